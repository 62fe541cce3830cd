#include "tools/launch/node_losses.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/launch/node_command.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <iterator>
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

namespace {

/// A field that lists; empty where the output has none.
std::vector<json_field> list_in(const json_value& document, const char* field) {
  auto found = json_field{"info", document}.at(field).list();
  return found ? std::move(*found) : std::vector<json_field>{};
}

} // namespace

std::set<std::string> missing_nodes_in(const std::string& output) {
  std::set<std::string> result;
  if (const auto document = parse_json(output))
    for (auto& each : list_in(*document, "missing"))
      if (auto name = each.text())
        result.insert(std::move(*name));
  return result;
}

std::optional<reported_loss> loss_in(const std::string& output) {
  const auto document = parse_json(output);
  if (!document)
    return std::nullopt;
  auto text = json_field{"info", *document}.at("lost").text();
  if (!text)
    return std::nullopt;
  return reported_loss{std::move(*text), !list_in(*document, "communicators").empty()};
}

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

void say(const std::string& text) {
  write_to_standard_error("caf-run: " + text + "\n");
}

std::string in_seconds(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", static_cast<double>(duration.count()) / 1000);
}

bool ended(const watched_process* process) {
  return process != nullptr && !process->running();
}

watched_process* start_or_say(process_watch& watch, const std::string& name, child_spec spec,
                              watched_process::output_use use) {
  auto process = watch.start(name, std::move(spec), use);
  if (process)
    return *process;
  say(fmt::format("{}: {}", name, render(process.error())));
  return nullptr;
}

} // namespace ringmaster::launch
