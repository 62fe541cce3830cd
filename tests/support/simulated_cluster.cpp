#include "tests/support/simulated_cluster.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace ringmaster::test {

simulation_options with_devices(uint32_t devices, uint64_t seed) {
  simulation_options result;
  result.devices = devices;
  result.seed = seed;
  return result;
}

simulated_cluster::simulated_cluster(const simulation_options& opts) : simulated_host(opts.seed), options(opts) {
  static int clusters = 0;
  dir = std::filesystem::path{"/dev/shm"} / fmt::format("ringmaster-test-{}-{}", ::getpid(), ++clusters);
  std::filesystem::create_directories(dir);
  if (opts.journaled)
    start_journal(sys);
  coordinator_options host_options;
  host_options.meet_bytes = opts.meet_bytes;
  host_options.journal = journal_handle;
  host_options.communicators.policy = opts.policy;
  host_options.communicators.turn = caf::timespan{0}; // others have a chance between any two operations and slices
  host_options.communicators.share_memory = opts.share_memory;
  host_options.communicators.journal = journal_handle;
  host_options.communicators.speak_by_relays = opts.relays > 0;
  host_options.communicators.devices_a_host = opts.devices_a_host;
  host_options.route = opts.offer_memory ? "auto" : "messages";
  host = sys.spawn<fair_coordinator>(host_options);
  device_settings.memory_dir = dir;
  device_settings.memory_bytes = opts.memory_bytes;
  device_settings.coordinator = host;
  device_settings.streams_options.slice_bytes = opts.slice_bytes;
  device_settings.streams_options.chunk_bytes = opts.slice_bytes;
  device_settings.streams_options.route = host_options.route;
  device_settings.streams_options.eager_bytes = opts.seed / 2 % 2
                                                * 64; // small blocks in messages: with their offers, too
  device_settings.streams_options.journal = journal_handle;
  for (uint32_t i = 0; i < opts.relays; ++i)
    relays.push_back(make_relay(sys, std::chrono::milliseconds{100}));
  add_devices(opts.devices);
}

simulated_cluster::~simulated_cluster() {
  for (auto& device : devices)
    self->send_exit(device, caf::exit_reason::kill);
  if (host_node)
    self->send_exit(host_node, caf::exit_reason::user_shutdown);
  for (auto& each : relays)
    self->send_exit(each, caf::exit_reason::user_shutdown);
  self->send_exit(host, caf::exit_reason::kill);
  if (journal_handle)
    self->send_exit(journal_handle, caf::exit_reason::kill);
  devices.clear();
  relays.clear();
  device_settings.relay = nullptr;
  journal_handle = nullptr;
  device_settings.streams_options.journal = nullptr;
  for (int i = 0; i < 1000000 && step(); ++i)
    ;
  host = nullptr;
  host_node = nullptr;
  device_settings.coordinator = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
}

bool simulated_cluster::step() {
  auto& jobs = scheduler.jobs;
  if (options.hurry_per_mille > 0 && random() % 1000 < options.hurry_per_mille)
    scheduler.advance_time(std::chrono::milliseconds{20});
  if (jobs.empty())
    return scheduler.trigger_timeout();
  std::swap(jobs.front(), jobs[random() % jobs.size()]);
  scheduler.run_once();
  return true;
}

void simulated_cluster::add_devices(uint32_t count) {
  auto wanted = static_cast<uint32_t>(ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices_size())
                + count;
  if (options.supervised && !host_node) {
    node_options settings;
    settings.name = "node";
    settings.devices = count;
    settings.device = device_settings;
    settings.restarts_max = 100;
    settings.coordinator = host;
    host_node = sys.spawn(node, settings);
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      device_settings.relay = relays.empty() ? relay_actor{} : relays[devices.size() % relays.size()];
      devices.push_back(sys.spawn(device, device_settings));
    }
  }
  await_devices(wanted);
}

} // namespace ringmaster::test
