#include "tools/launch/node_losses.hpp"

#include "tools/launch/info_answers.hpp"
#include "tools/launch/launch_words.hpp"
#include "tools/launch/node_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace ringmaster::launch {

namespace {

/// How long the coordinator may take to notice the loss and `ringmaster info` to report it.
constexpr std::chrono::seconds inquiry_limit{3};
constexpr std::chrono::milliseconds inquiry_margin{2000};

} // namespace

std::string place_text(const watched_process& node, const node_place& place) {
  return place.local ? node.name() : fmt::format("{} on {}", node.name(), place.host);
}

void node_losses::look(const std::vector<watched_process*>& nodes, const std::string& coordinator,
                       const std::string& how) {
  const auto now = process_watch::clock::now();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!ended(nodes[i]))
      continue;
    if (losses_.count(i) == 0) {
      auto* inquiry = coordinator.empty()
                        ? nullptr
                        : start_or_say(watch_, "info",
                                       {.arguments = gone_command(line_, places_[i], coordinator, inquiry_limit)},
                                       watched_process::output_use::kept);
      losses_[i] = {inquiry, now + inquiry_limit + inquiry_margin, false};
    }
    auto& found = losses_[i];
    if (found.inquiry == nullptr || ended(found.inquiry) || now >= found.report_at)
      report(i, *nodes[i], how);
  }
}

void node_losses::finish(const std::vector<watched_process*>& nodes, const std::string& how) {
  for (auto& [node, its] : losses_)
    report(node, *nodes[node], how);
}

void node_losses::report(size_t node, const watched_process& process, const std::string& how) {
  auto& its = losses_[node];
  if (std::exchange(its.reported, true))
    return;
  const auto taken = its.inquiry == nullptr ? std::nullopt : loss_in(its.inquiry->kept_output());
  // A node that exits with 0 and loses no rank was drained, or its devices were free.
  if (!process.status()->success() || (taken && taken->has_ranks))
    say(fmt::format("{} {}{}; {}", place_text(process, places_[node]), process.describe_end(),
                    taken ? ", and took with it " + taken->text : "", how));
  if (its.inquiry != nullptr)
    its.inquiry->signal(SIGKILL);
}

node_losses::time_point node_losses::due() const {
  auto result = time_point::max();
  for (auto& [node, its] : losses_)
    if (!its.reported)
      result = std::min(result, its.report_at);
  return result;
}

} // namespace ringmaster::launch
