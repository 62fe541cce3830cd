#include "actors/configuration/settings.hpp"

#include "actors/movers/shared_memory_movers.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/routes.hpp"
#include "runtime/text/own_address.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

namespace ringmaster {

proto::FailurePolicy parse_policy(const std::string& text) {
  return text == "replace" ? proto::REPLACE : text == "abort" ? proto::ABORT : proto::SHRINK;
}

uint64_t memory_files_bytes(const options& opts) {
  return opts.device.count * memory_file_bytes(opts);
}

uint64_t memory_file_bytes(const options& opts) {
  return mapped_memory::file_bytes(opts.device.memory_bytes);
}

namespace {

double seconds(options::duration x) {
  return std::chrono::duration<double>{x}.count();
}

/// Whether processes read each other's memory.
bool shares_memory(const options& opts) {
  return may_go(opts.route.use, &route_facts::maps_memory);
}

} // namespace

cost_constants network_costs(const options& opts) {
  return {.latency_s = seconds(opts.costs.latency),
          .bandwidth = static_cast<double>(opts.costs.bandwidth),
          .message_overhead_s = seconds(opts.costs.message),
          .operation_s = seconds(opts.costs.operation),
          .host_latency_s = seconds(opts.costs.host_latency),
          .host_bandwidth = static_cast<double>(opts.costs.host_bandwidth)};
}

process_constants process_costs(const options& opts, uint32_t cores) {
  auto& x = opts.costs;
  return {.cores = cores,
          .operation_s = seconds(x.local_operation),
          .rank_s = seconds(x.local_rank),
          .step_s = seconds(x.local_step),
          .message_s = seconds(x.local_message),
          .bandwidth = static_cast<double>(x.local_bandwidth),
          .reduction_rate = static_cast<double>(x.local_reduction_rate),
          .memory_bandwidth = static_cast<double>(x.local_memory_bandwidth),
          .cache_bytes = x.local_cache_bytes,
          .joint = {.operation_s = seconds(x.shared_memory_operation),
                    .rank_s = seconds(x.joint_rank),
                    .bandwidth = static_cast<double>(x.joint_bandwidth)},
          .training = {.collective_s = seconds(x.training_call), .receive_s = seconds(x.training_receive)}};
}

device_options device_settings(const options& opts, const std::filesystem::path& memory_dir) {
  device_options result;
  result.memory_dir = memory_dir;
  result.memory_bytes = opts.device.memory_bytes;
  result.streams = opts.device.streams;
  auto& streams = result.streams_options;
  streams.transfer_limit = opts.transfers.timeout;
  streams.wait_limit = opts.communicator.operation_timeout;
  streams.slice_bytes = opts.transfers.slice_bytes;
  streams.chunk_bytes = opts.route.chunk_bytes;
  streams.credits = opts.route.credits;
  streams.route = opts.route.use;
  streams.eager_bytes = opts.link.eager_bytes;
  if (shares_memory(opts))
    streams.neighbours = std::make_shared<memory_neighbours>(mapped_memory::access::read);
  streams.clock = wall_clock::of_this_process();
  return result;
}

link_options link_settings(const options& opts) {
  link_options result;
  result.addresses = opts.link.addresses;
  result.port = opts.link.port;
  result.connections = opts.link.connections;
  result.checksums = opts.link.checksums;
  result.silence = opts.link.silence;
  result.connect_limit = opts.link.connect_timeout;
  return result;
}

coordinator_options coordinator_settings(const options& opts) {
  coordinator_options result;
  result.clock = wall_clock::of_this_process();
  result.pid = static_cast<uint64_t>(::getpid());
  result.request_limit = opts.coordinator.request_timeout;
  result.host_copies_bytes_max = opts.coordinator.host_copies_bytes_max;
  result.rejoin_limit = opts.coordinator.rejoin_timeout;
  result.orphan_limit = opts.node.orphan_timeout;
  result.stop_without_store = opts.journal.on_failure == "stop";
  result.communicators.policy = parse_policy(opts.communicator.policy);
  result.communicators.deterministic = opts.communicator.deterministic;
  result.communicators.suspect = opts.suspicion;
  result.idle_interval = opts.suspicion.idle_interval;
  result.communicators.operation_limit = opts.communicator.operation_timeout;
  result.communicators.costs = network_costs(opts);
  result.route = opts.route.use;
  result.insecure = opts.trust.insecure;
  result.communicators.share_memory = shares_memory(opts);
  result.communicators.must_share = must_go(opts.route.use, &route_facts::maps_memory);
  result.communicators.must_link = must_go(opts.route.use, &route_facts::has_links);
  result.meet_bytes = result.communicators.share_memory ? opts.ranks.meet_bytes : 0;
  if (result.communicators.share_memory)
    result.communicators.neighbours = std::make_shared<memory_neighbours>(mapped_memory::access::write);
  result.communicators.movers = shared_memory_movers::begin_of_this_process();
  result.communicators.spare_limit = opts.communicator.spare_timeout;
  result.communicators.clock = result.clock;
  return result;
}

node_options node_settings(const options& opts, const std::filesystem::path& memory_dir) {
  node_options result;
  result.pid = static_cast<uint64_t>(::getpid());
  result.hostname = own_host_name();
  result.name = opts.node.name.empty() ? fmt::format("{}-{}", result.hostname, result.pid) : opts.node.name;
  result.devices = opts.device.count;
  result.device = device_settings(opts, memory_dir);
  result.restarts_max = opts.supervisor.restarts_max;
  result.period = opts.supervisor.period;
  result.join_limit = opts.node.join_timeout;
  result.report_limit = opts.suspicion.interval;
  return result;
}

std::function<caf::error()> keeper_of(std::shared_ptr<memory_directory> memory) {
  return [memory = std::move(memory)]() -> caf::error {
    TRY(made, memory->keep());
    if (*made)
      spdlog::warn("the directory {} of this process's device memory files, or its lock, was removed: it is "
                   "there again for devices that start from now on; those that live keep their memory, which other "
                   "processes may not find",
                   memory->path().string());
    return caf::none;
  };
}

} // namespace ringmaster
