#include "gateway/http/state/cluster_metrics.hpp"

#include "runtime/journal/record_text.hpp"
#include "runtime/text/utf8.hpp"

#include <algorithm>

namespace ringmaster::gateway {

namespace {

using proto::CommunicatorStatus;

void write_members(metric_page& page, const proto::ClusterInfo& x) {
  uint64_t free = 0, memory = 0;
  for (auto& device : x.devices()) {
    free += device.comm_ids().empty() ? 1 : 0;
    memory += device.metadata().maxmemaddr().value() - device.metadata().minmemaddr().value();
  }
  page.gauge("ringmaster_devices", "Devices of the cluster, by whether a communicator has them.")
    .add(free, {{"state", "free"}})
    .add(static_cast<uint64_t>(x.devices_size()) - free, {{"state", "taken"}});
  page.gauge("ringmaster_device_memory_bytes", "Memory of all devices.").add(memory);
  uint64_t silent = 0, draining = 0, apart = 0;
  for (auto& node : x.nodes()) {
    silent += node.silent_ns() > 0 ? 1 : 0;
    draining += node.draining() ? 1 : 0;
    apart += static_cast<uint64_t>(node.apart_size());
  }
  page.gauge("ringmaster_nodes", "Nodes of the cluster.").add(static_cast<uint64_t>(x.nodes_size()));
  page.gauge("ringmaster_nodes_silent", "Nodes that do not answer now.").add(silent);
  page.gauge("ringmaster_nodes_draining", "Nodes that are being drained.").add(draining);
  page.gauge("ringmaster_node_pairs_disconnected", "Nodes without a direct connection, counted at either end.")
    .add(apart);
}

metric_page::labels label_of(const CommunicatorStatus& x) {
  return {{"communicator", std::to_string(x.comm_id())}};
}

void write_communicators(metric_page& page, const proto::ClusterStatus& x) {
  std::map<std::string, uint64_t> states;
  for (auto& each : x.communicators())
    ++states[lower_case(CommunicatorStatus::State_Name(each.state()))];
  page.gauge("ringmaster_communicators", "Communicators, by state.");
  for (auto& [state, count] : states)
    page.add(count, {{"state", state}});
  page.gauge("ringmaster_communicator_epoch", "Epoch of a communicator.");
  for (auto& each : x.communicators())
    page.add(each.epoch(), label_of(each));
  page.gauge("ringmaster_communicator_ranks", "Ranks of a communicator.");
  for (auto& each : x.communicators())
    page.add(static_cast<uint64_t>(each.ranks_size()), label_of(each));
  page.gauge("ringmaster_communicator_stalled_seconds", "Time since the last progress of any rank, while an operation "
                                                        "is in flight.");
  for (auto& each : x.communicators())
    page.add(static_cast<double>(each.still_ns()) / 1e9, label_of(each));
  page.gauge("ringmaster_suspicion_late_answers", "Late ones of the latest answers of the slowest rank.");
  for (auto& each : x.communicators()) {
    uint32_t late = 0;
    for (auto& rank : each.ranks())
      late = std::max(late, rank.late());
    page.add(uint64_t{late}, label_of(each));
  }
  page.gauge("ringmaster_suspicion_silence_seconds", "For how long the most silent rank has owed an answer.");
  for (auto& each : x.communicators()) {
    uint64_t silent_ns = 0;
    for (auto& rank : each.ranks())
      silent_ns = std::max(silent_ns, rank.silent_ns());
    page.add(static_cast<double>(silent_ns) / 1e9, label_of(each));
  }
}

void write_queues(metric_page& page, const queue_lengths& x) {
  page.gauge("ringmaster_operations_in_flight", "Operations that were called and have not ended.")
    .add(x.operations_in_flight);
  page.gauge("ringmaster_operations_grouped", "Operations that wait for the end of their group.")
    .add(x.waiting_for_group_end);
  page.gauge("ringmaster_stream_queue_length", "Commands in the streams of all ranks, as of their latest answers.")
    .add(x.stream_commands);
  page.gauge("ringmaster_rank_calls_open", "Calls of ranks that are not answered.").add(x.open_calls);
  page.gauge("ringmaster_rank_calls_waiting", "Calls of ranks that wait for calls of other ranks.")
    .add(x.waiting_calls);
}

} // namespace

void write_cluster(metric_page& page, const proto::ClusterStatus& x, const cluster_facts& facts,
                   const std::map<std::string, uint64_t>& route_bytes) {
  page.gauge("ringmaster_up", "Whether the coordinator answers.").add(uint64_t{facts.error.empty() ? 1U : 0U});
  write_members(page, x.cluster());
  write_communicators(page, x);
  write_queues(page, queue_lengths::of(x));
  page.counter("ringmaster_route_bytes_total", "Bytes that ranks received, by route, since the gateway was started.");
  for (auto& [route, bytes] : route_bytes)
    page.add(bytes, {{"route", route}});
  page.gauge("ringmaster_journal_lag_records", "Records of the journal that the gateway has not read yet.")
    .add(facts.last_index - std::min(facts.folded, facts.last_index));
  page.gauge("ringmaster_journal_unsynced_records", "Records that would be lost with the coordinator's host.")
    .add(facts.unsynced);
  page.gauge("ringmaster_journal_kept_records", "Records in the journal.")
    .add(facts.last_index + 1 - std::min(facts.first_index, facts.last_index + 1));
  page.gauge("ringmaster_journal_trouble", "Whether records are missing in the journal, or cannot be written.")
    .add(uint64_t{x.cluster().journal_trouble().empty() ? 0U : 1U});
}

void write_trainings(metric_page& page, const training_runs& runs) {
  const auto all = runs.runs();
  const auto write = [&](const char* name, const char* help, auto value) {
    page.gauge(name, help);
    for (const auto* run : all)
      page.add(static_cast<double>(value(*run)), {{"run", training_name(run->id)}});
  };
  write("ringmaster_training_step", "The latest step of a training run.", [](auto& x) { return x.latest.step; });
  write("ringmaster_training_loss", "Its loss.", [](auto& x) { return x.latest.loss; });
  write("ringmaster_training_samples_per_second", "Its rate.", [](auto& x) { return x.latest.samples_per_s; });
  write("ringmaster_training_step_seconds", "Its duration.", [](auto& x) { return x.latest.step_seconds; });
  write("ringmaster_training_ranks", "Ranks of its latest step.", [](auto& x) { return x.ranks; });
}

} // namespace ringmaster::gateway
