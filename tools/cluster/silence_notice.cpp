#include "tools/cluster/silence_notice.hpp"

#include "runtime/invariants/ensure.hpp"
#include "tools/console/terminal.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace ringmaster {

namespace {

constexpr std::chrono::seconds interval{1};

} // namespace

silence_notice::silence_notice(std::FILE* out)
  : out_(out), is_live_(terminal{out}.is_one()), looks_([this](std::stop_token ends) { look(std::move(ends)); }) {}

void silence_notice::asked() {
  std::lock_guard guard{mutex_};
  if (asked_at_)
    return;
  asked_at_ = clock::now();
  due_ = *asked_at_ + interval;
  changed_.notify_one();
}

void silence_notice::answered() {
  std::lock_guard guard{mutex_};
  asked_at_.reset();
  if (std::exchange(reported_, false) && is_live_) {
    std::fputc('\n', out_); // finishes the line
    std::fflush(out_);
  }
  changed_.notify_one();
}

void silence_notice::look(std::stop_token ends) {
  std::unique_lock lock{mutex_};
  while (!ends.stop_requested()) {
    if (!asked_at_) {
      changed_.wait(lock, ends, [this] { return asked_at_.has_value(); });
      continue;
    }
    if (changed_.wait_until(lock, ends, due_, [this] { return !asked_at_; }) || ends.stop_requested())
      continue;
    report();
    due_ += interval;
  }
}

void silence_notice::report() {
  if (std::exchange(reported_, true) && !is_live_)
    return;
  ensure(asked_at_.has_value(), "a silence starts with a question");
  const std::chrono::duration<double> silence = clock::now() - *asked_at_;
  const auto text = fmt::format("{}ringmaster status: the coordinator has not answered for {:.0f} s{}",
                                is_live_ ? "\r" : "", silence.count(), is_live_ ? "" : "\n");
  std::fwrite(text.data(), 1, text.size(), out_); // fmt::print would throw for a closed pipe
  std::fflush(out_);
}

} // namespace ringmaster
