// A program for caf-run: runs all-reduces on the devices of all nodes, kills or freezes one of the nodes in the middle,
// and checks what becomes of the operation and the communicator.
//   node_fault kill|freeze|freeze-idle
#include "tests/programs/cluster_program.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <thread>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t count = 1 << 19; // 4 MiB a rank: long enough to be interrupted
using steady = std::chrono::steady_clock;

/// Waits until only `devices` are there.
caf::error await_loss(client& host, int devices, std::chrono::seconds limit) {
  auto give_up = steady::now() + limit;
  for (;;) {
    auto info = host.devices();
    if (!info)
      return info.error();
    if (info->devices_size() == devices)
      return caf::none;
    if (steady::now() > give_up)
      return wrong(fmt::format("{} devices are still there", info->devices_size()));
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

caf::error run(client& host, int signal, bool idle) {
  auto info = host.devices(8, std::chrono::seconds{10});
  if (!info)
    return info.error();
  auto victim = info->nodes(1);
  auto on_victim = [&](uint64_t device) {
    return std::any_of(info->devices().begin(), info->devices().end(), [&](auto& x) {
      return x.metadata().deviceid().value() == device && x.node_id() == victim.node_id();
    });
  };
  auto comm = host.comm_init(8, proto::SHRINK);
  if (!comm)
    return comm.error();
  if (idle) {
    ::kill(static_cast<pid_t>(victim.pid()), signal);
    auto problem = await_loss(host, 6, std::chrono::seconds{8});
    ::kill(static_cast<pid_t>(victim.pid()), SIGCONT);
    return problem;
  }
  gpu_sim::AllReduceRingRequest request;
  request.set_commid(comm->commid());
  request.set_count(count);
  double survivors_sum = 0;
  for (int rank = 0; rank < 8; ++rank) {
    auto& device = comm->devices(rank);
    auto value = static_cast<double>(1 << rank);
    if (!on_victim(device.deviceid().value()))
      survivors_sum += value;
    if (auto problem = host.copy_to_device(id_of(device), device.minmemaddr().value(),
                                           byte_block::of(std::vector<double>(count, value))))
      return problem;
    (*request.mutable_memaddrs())[rank] = device.minmemaddr();
  }
  if (auto sequence = host.all_reduce_ring(request); !sequence)
    return sequence.error();
  auto start = steady::now();
  ::kill(static_cast<pid_t>(victim.pid()), signal);
  auto status = host.wait(id_of(*comm), std::chrono::seconds{20});
  auto took_ms = std::chrono::duration<double, std::milli>{steady::now() - start}.count();
  ::kill(static_cast<pid_t>(victim.pid()), SIGCONT); // so that it can be ended in good order
  if (!status)
    return status.error();
  if (status->status() != gpu_sim::SUCCESS || status->devices_size() != 6 || status->epoch() < 2)
    return wrong(status->ShortDebugString());
  for (auto& device : status->devices()) {
    auto output = host.copy_to_host(id_of(device), device.minmemaddr().value(), count * sizeof(double));
    if (!output)
      return output.error();
    for (auto x : output->as<double>())
      if (x != survivors_sum)
        return wrong(fmt::format("device 0x{:x} holds {}, not {}", device.deviceid().value(), x, survivors_sum));
  }
  fmt::print("right on {} survivors after {:.0f} ms\n", status->devices_size(), took_ms);
  return host.destroy(id_of(*comm));
}

} // namespace

int main(int argc, char** argv) {
  std::string how = argc > 1 ? argv[1] : "";
  return run_on_cluster("node_fault", [&](client& host) {
    return run(host, how == "kill" ? SIGKILL : SIGSTOP, how == "freeze-idle");
  });
}
