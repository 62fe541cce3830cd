#include "tools/launch/absence_notice.hpp"

#include "tools/launch/launch_words.hpp"
#include "tools/launch/node_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <utility>

namespace ringmaster::launch {

namespace {

constexpr std::chrono::milliseconds moment{250};
/// In one command: a line of a shell, and of a system's table of processes, has an end.
constexpr size_t ranks_max = 256;

} // namespace

void absence_notice::add(std::vector<std::string> ranks) {
  if (ranks.empty())
    return;
  std::move(ranks.begin(), ranks.end(), std::back_inserter(waiting_));
  due_ = std::min(due_, process_watch::clock::now() + moment);
}

void absence_notice::look(const std::string& coordinator) {
  look_how_it_ended();
  const auto now = process_watch::clock::now();
  if (now < due_)
    return;
  due_ = telling_ != nullptr || waiting_.size() > ranks_max ? now + moment : time_point::max();
  if (telling_ != nullptr)
    return;
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), ranks_max));
  under_way_.assign(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  telling_ = start_or_say(watch_, "absent", {.arguments = absent_command(line_, under_way_, coordinator)},
                          watched_process::output_use::kept);
}

void absence_notice::look_how_it_ended() {
  if (!ended(telling_))
    return;
  auto* told = std::exchange(telling_, nullptr);
  if (!told->status()->success())
    say(fmt::format("the coordinator could not be told what became of rank {}{}, so others may wait for {}: ringmaster "
                    "absent {}",
                    under_way_.front(),
                    under_way_.size() == 1 ? "" : fmt::format(", and of {} others", under_way_.size() - 1),
                    under_way_.size() == 1 ? "it" : "them", told->describe_end()));
}

void absence_notice::stop() {
  due_ = time_point::max();
  waiting_.clear();
  if (telling_ != nullptr)
    std::exchange(telling_, nullptr)->signal(SIGKILL);
}

} // namespace ringmaster::launch
