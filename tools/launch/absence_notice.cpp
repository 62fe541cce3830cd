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
/// In one command, whose line must not become too long.
constexpr size_t ranks_max = 256;

} // namespace

void absence_notice::add(std::vector<std::string> ranks) {
  if (ranks.empty())
    return;
  std::move(ranks.begin(), ranks.end(), std::back_inserter(waiting_));
  due_ = std::min(due_, process_watch::clock::now() + moment);
}

void absence_notice::look(const std::string& coordinator) {
  check_report();
  const auto now = process_watch::clock::now();
  if (now < due_)
    return;
  due_ = report_ != nullptr || waiting_.size() > ranks_max ? now + moment : time_point::max();
  if (report_ != nullptr)
    return;
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), ranks_max));
  in_report_.assign(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  report_ = start_or_say(watch_, "absent", {.arguments = absent_command(line_, in_report_, coordinator)},
                         watched_process::output_use::kept);
}

void absence_notice::check_report() {
  if (!ended(report_))
    return;
  const auto* report = std::exchange(report_, nullptr);
  if (report->status()->success())
    return;
  const auto others = in_report_.size() - 1;
  say(fmt::format("the coordinator could not be notified that the {}, so others may wait for {}: ringmaster absent {}",
                  others == 0
                    ? fmt::format("process of rank {} has exited", in_report_.front())
                    : fmt::format("processes of rank {} and {} others have exited", in_report_.front(), others),
                  others == 0 ? "it" : "them", report->describe_end()));
}

void absence_notice::stop() {
  due_ = time_point::max();
  waiting_.clear();
  if (report_ != nullptr)
    std::exchange(report_, nullptr)->signal(SIGKILL);
}

} // namespace ringmaster::launch
