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

proto::FaultRequest fault(proto::FaultRequest::Kind kind, std::optional<uint32_t> step, caf::timespan delay) {
  proto::FaultRequest result;
  result.set_kind(kind);
  result.set_at_step(step.has_value());
  result.set_step(step.value_or(0));
  result.set_delay_ns(static_cast<uint64_t>(delay.count()));
  return result;
}

simulated_cluster::simulated_cluster(const simulation_options& opts) : options(opts), random(opts.seed) {
  static int clusters = 0;
  dir = std::filesystem::path{"/dev/shm"} / fmt::format("ringmaster-test-{}-{}", ::getpid(), ++clusters);
  if (opts.journaled) {
    log = std::move(*journal_store::open({}));
    journal_options settings;
    settings.store = log;
    journal_handle = sys.spawn(journal, std::move(settings));
  }
  coordinator_options host_options;
  host_options.meet_bytes = opts.meet_bytes;
  host_options.journal = journal_handle;
  host_options.communicators.policy = opts.policy;
  host_options.communicators.turn = caf::timespan{0}; // others have a chance between any two operations and slices
  host_options.communicators.share_memory = opts.share_memory;
  host_options.communicators.journal = journal_handle;
  host_options.communicators.speak_by_relays = opts.relays > 0;
  host_options.communicators.devices_a_host = opts.devices_a_host;
  host = sys.spawn(coordinator, host_options);
  device_settings.memory_dir = dir;
  device_settings.memory_bytes = opts.memory_bytes;
  device_settings.coordinator = host;
  device_settings.streams_options.slice_bytes = opts.slice_bytes;
  device_settings.streams_options.chunk_bytes = opts.slice_bytes;
  device_settings.streams_options.route = opts.offer_memory ? "auto" : "messages";
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

void simulated_cluster::run_until(const std::function<bool()>& done) {
  constexpr int steps_max = 2000000;
  for (int i = 0; !done(); ++i) {
    if (i == steps_max)
      FAIL("no end after ", steps_max, " steps, seed ", options.seed);
    if (!step())
      FAIL("nothing is left to do, but it has not happened; seed ", options.seed);
  }
}

std::vector<proto::Record> simulated_cluster::history() {
  auto flushed = call<proto::JournalFlushResponse>(journal_handle, proto::JournalFlushRequest{});
  REQUIRE(flushed.error() == "");
  auto records = log->read();
  if (!records)
    FAIL(render(records.error()));
  return std::move(*records);
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
  proto::ClusterInfoRequest request;
  request.set_min_devices(wanted);
  run_until([&] {
    return static_cast<uint32_t>(ask_coordinator<proto::ClusterInfo>(request).devices_size()) >= wanted;
  });
}

gpu_sim::CommInitResponse simulated_cluster::init(uint32_t ranks) {
  gpu_sim::CommInitRequest request;
  request.set_numdevices(ranks);
  request.set_defaultpolicy(true);
  return ask_coordinator<gpu_sim::CommInitResponse>(std::move(request));
}

void simulated_cluster::copy_in(uint64_t device, uint64_t address, byte_block block) {
  gpu_sim::MemcpyRequest request;
  request.mutable_hosttodevice()->mutable_dstdeviceid()->set_value(device);
  request.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(address);
  auto pending = self->request(host, caf::infinite, std::move(request), std::move(block));
  run_until([&] { return !self->mailbox().empty(); });
  pending.receive([&](const gpu_sim::MemcpyResponse& x, const byte_block&) { REQUIRE(x.error() == ""); },
                  [&](const caf::error& problem) { FAIL(render(problem)); });
}

byte_block simulated_cluster::copy_out(uint64_t device, uint64_t address, uint64_t bytes) {
  gpu_sim::MemcpyRequest request;
  request.mutable_devicetohost()->mutable_srcdeviceid()->set_value(device);
  request.mutable_devicetohost()->mutable_srcmemaddr()->set_value(address);
  request.mutable_devicetohost()->set_numbytes(bytes);
  auto pending = self->request(host, caf::infinite, std::move(request), byte_block{});
  run_until([&] { return !self->mailbox().empty(); });
  byte_block result;
  pending.receive(
    [&](const gpu_sim::MemcpyResponse& x, byte_block& block) {
      REQUIRE(x.error() == "");
      result = std::move(block);
    },
    [&](const caf::error& problem) { FAIL(render(problem)); });
  return result;
}

gpu_sim::GetCommStatusResponse simulated_cluster::wait(uint64_t communicator) {
  proto::CommWaitRequest request;
  request.set_comm_id(communicator);
  request.set_timeout_ns(uint64_t{120} * 1000 * 1000 * 1000);
  return ask_coordinator<gpu_sim::GetCommStatusResponse>(std::move(request));
}

void simulated_cluster::inject(uint64_t device, const proto::FaultRequest& fault) {
  gpu_sim::DeviceId id;
  id.set_value(device);
  auto answer = ask_coordinator<proto::FaultResponse>(std::move(id), fault);
  REQUIRE(answer.error() == "");
}

} // namespace ringmaster::test
