#include "tests/support/simulated_host.hpp"

#include "actors/calls/answers.hpp"

namespace ringmaster::test {

proto::FaultRequest fault(proto::FaultRequest::Kind kind, std::optional<uint32_t> step, caf::timespan delay) {
  proto::FaultRequest result;
  result.set_kind(kind);
  result.set_at_step(step.has_value());
  result.set_step(step.value_or(0));
  result.set_delay_ns(static_cast<uint64_t>(delay.count()));
  return result;
}

void simulated_host::start_journal(caf::actor_system& sys) {
  if (log == nullptr) // else its process is restarted, and the log was on a disk
    log = std::move(*journal_store::open({}));
  journal_options settings;
  settings.store = log;
  journal_handle = sys.spawn(journal, std::move(settings));
}

void simulated_host::run_until(const std::function<bool()>& done) {
  constexpr int steps_max = 2000000;
  for (int i = 0; !done(); ++i) {
    if (i == steps_max)
      FAIL("no end after ", steps_max, " steps, seed ", seed);
    if (!step())
      FAIL("nothing is left to do, but it has not happened; seed ", seed);
  }
}

std::vector<proto::Record> simulated_host::history() {
  auto flushed = call<proto::JournalFlushResponse>(journal_handle, proto::JournalFlushRequest{});
  REQUIRE(flushed.error() == "");
  auto records = log->read();
  if (!records)
    FAIL(render(records.error()));
  return std::move(*records);
}

gpu_sim::CommInitResponse simulated_host::init(uint32_t ranks) {
  gpu_sim::CommInitRequest request;
  request.set_numdevices(ranks);
  request.set_defaultpolicy(true);
  return ask_coordinator<gpu_sim::CommInitResponse>(std::move(request));
}

void simulated_host::await_devices(uint32_t count) {
  proto::ClusterInfoRequest request;
  request.set_min_devices(count);
  run_until([&] {
    return static_cast<uint32_t>(ask_coordinator<proto::ClusterInfo>(request).devices_size()) >= count;
  });
}

std::pair<gpu_sim::MemcpyResponse, byte_block> simulated_host::copy(gpu_sim::MemcpyRequest request, byte_block block) {
  auto& self = client();
  auto pending = self->request(host, caf::infinite, std::move(request), std::move(block));
  run_until([&] { return !self->mailbox().empty(); });
  std::pair<gpu_sim::MemcpyResponse, byte_block> result;
  pending.receive(
    [&](gpu_sim::MemcpyResponse& x, byte_block& bytes) {
      result = {std::move(x), std::move(bytes)};
    },
    [&](const caf::error& problem) { FAIL(render(problem)); });
  return result;
}

void simulated_host::copy_in(uint64_t device, uint64_t address, byte_block block) {
  gpu_sim::MemcpyRequest request;
  request.mutable_hosttodevice()->mutable_dstdeviceid()->set_value(device);
  request.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(address);
  REQUIRE(copy(std::move(request), std::move(block)).first.error() == "");
}

caf::expected<byte_block> simulated_host::read(uint64_t device, uint64_t address, uint64_t bytes) {
  gpu_sim::MemcpyRequest request;
  request.mutable_devicetohost()->mutable_srcdeviceid()->set_value(device);
  request.mutable_devicetohost()->mutable_srcmemaddr()->set_value(address);
  request.mutable_devicetohost()->set_numbytes(bytes);
  auto [answer, block] = copy(std::move(request), byte_block{});
  if (auto problem = error_in(answer))
    return problem;
  return std::move(block);
}

byte_block simulated_host::copy_out(uint64_t device, uint64_t address, uint64_t bytes) {
  auto result = read(device, address, bytes);
  if (!result)
    FAIL(render(result.error()));
  return std::move(*result);
}

gpu_sim::GetCommStatusResponse simulated_host::wait(uint64_t communicator) {
  proto::CommWaitRequest request;
  request.set_comm_id(communicator);
  request.set_timeout_ns(uint64_t{120} * 1000 * 1000 * 1000);
  return ask_coordinator<gpu_sim::GetCommStatusResponse>(std::move(request));
}

void simulated_host::inject(uint64_t device, const proto::FaultRequest& fault) {
  gpu_sim::DeviceId id;
  id.set_value(device);
  auto answer = ask_coordinator<proto::FaultResponse>(std::move(id), fault);
  REQUIRE(answer.error() == "");
}

} // namespace ringmaster::test
