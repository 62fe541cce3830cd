#include "tools/console/progress.hpp"

#include "runtime/invariants/ensure.hpp"
#include "tools/console/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unistd.h>
#include <utility>

namespace ringmaster {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds silent = 1s, between_lines = 200ms;
/// A smaller part does not predict the rest.
constexpr double part_min = 0.005;

/// "12 s", "3 min 20 s", "2 h 5 min".
std::string rounded(double seconds) {
  const auto all = static_cast<int64_t>(std::ceil(seconds));
  if (all < 60)
    return fmt::format("{} s", all);
  return all < 3600 ? fmt::format("{} min {} s", all / 60, all % 60)
                    : fmt::format("{} h {} min", all / 3600, all / 60 % 60);
}

} // namespace

progress::progress(std::string what)
  : progress(std::move(what), ::isatty(STDERR_FILENO) == 1 ? stderr : nullptr, std::chrono::steady_clock::now) {}

progress::progress(std::string what, std::FILE* err, clock now)
  : what_(std::move(what)), err_(err), now_(std::move(now)), start_(now_()), next_(start_ + silent) {}

progress::~progress() {
  clear();
}

void progress::at(double part, std::string_view more) {
  if (err_ == nullptr)
    return;
  const auto now = now_();
  ensure(now >= start_, "time never runs backwards");
  if (now < next_)
    return;
  next_ = now + between_lines;
  part = std::clamp(part, 0.0, 1.0);
  const auto passed = std::chrono::duration<double>(now - start_).count();
  auto line = fmt::format("{}: {:.0f} % done", what_, std::floor(100 * part));
  if (const auto done = part - begun_at_; done >= part_min)
    line += fmt::format(", about {} left", rounded(passed * (1 - part) / done));
  if (!more.empty())
    line += fmt::format(", {}", more);
  fmt::print(err_, "\r\033[K{}", terminal{err_}.fitted(std::move(line), 1)); // one that goes on below is not cleared
  std::fflush(err_);
  shown_ = true;
}

void progress::print(std::FILE* out, std::string_view text) {
  clear();
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

void progress::clear() {
  if (!std::exchange(shown_, false))
    return;
  fmt::print(err_, "\r\033[K");
  std::fflush(err_);
}

} // namespace ringmaster
