// Kills a device in the middle of a ring all-reduce and prints what happens: the communicator opens a new epoch on the
// survivors, and the operation runs again from their untouched inputs.
//
//   build/release/examples/fault_injection
//
// prints (device numbers as the coordinator gave them)
//
//   rank 2 will die after 3 of 6 rounds
//   status: SUCCESS, epoch 2, devices 0x1 0x2 0x4
//   why: rank 2 (device 0x3) was lost: killed on request, round 3 of 6 of operation #1 on communicator 1
//   every survivor holds 1 + 2 + 8 = 11
#include "actors/calls/answers.hpp"
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "runtime/configuration/places.hpp"

#include <algorithm>
#include <fmt/format.h>

using namespace ringmaster;

namespace {

constexpr uint32_t ranks = 4;
constexpr uint32_t victim = 2;
constexpr uint64_t count = 100'000;

caf::error run(client& host) {
  auto comm = host.comm_init(ranks);
  if (!comm)
    return comm.error();
  gpu_sim::AllReduceRingRequest request;
  request.set_commid(comm->commid());
  request.set_count(count);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto& device = comm->devices(static_cast<int>(rank));
    std::vector<double> input(count, 1 << rank);
    if (auto problem = host.copy_to_device(id_of(device), device.minmemaddr().value(),
                                           byte_block::of(std::move(input))))
      return problem;
    (*request.mutable_memaddrs())[rank] = device.minmemaddr();
  }
  proto::FaultRequest fault; // KILL; HANG and SLOW are its siblings
  fault.set_at_step(true);
  fault.set_step(3);
  if (auto problem = host.inject(id_of(comm->devices(victim)), fault))
    return problem;
  fmt::print("rank {} will die after 3 of {} rounds\n", victim, 2 * (ranks - 1));
  if (auto sequence = host.all_reduce_ring(request); !sequence)
    return sequence.error();
  auto status = host.wait(id_of(*comm), std::chrono::seconds{30});
  if (!status)
    return status.error();
  if (status->status() != gpu_sim::SUCCESS)
    return error_in(*status);
  fmt::print("status: {}, epoch {}, devices", gpu_sim::Status_Name(status->status()), status->epoch());
  for (auto& device : status->devices())
    fmt::print(" 0x{:x}", device.deviceid().value());
  fmt::print("\nwhy: {}\n", status->asyncerror());
  for (auto& device : status->devices()) {
    auto output = host.copy_to_host(id_of(device), device.minmemaddr().value(), count * sizeof(double));
    if (!output)
      return output.error();
    auto values = output->as<double>();
    if (!std::all_of(values.begin(), values.end(), [](double x) { return x == 11; }))
      return make_error(errc::corrupt, fmt::format("device 0x{:x} has a wrong result", device.deviceid().value()));
  }
  fmt::print("every survivor holds 1 + 2 + 8 = 11\n");
  return host.destroy(id_of(*comm));
}

} // namespace

int main(int argc, char** argv) {
  configuration cfg;
  caf::error problem = cfg.read(argc, argv, find_configuration());
  if (!problem && cfg.cli_helptext_printed)
    return 0;
  if (!problem)
    problem = cfg.check_remainder();
  if (problem) {
    fmt::print(stderr, "fault_injection: {}\n", render(problem));
    return code_of(problem) == errc::io_error ? 1 : 2; // 2: what the command line or the file says cannot be
  }
  auto opts = cfg.values();
  opts.log.level = "warn"; // this program tells it itself
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts);
  if (home) {
    client host{system, (*home)->coordinator()};
    problem = run(host);
  } else {
    problem = home.error();
  }
  if (problem)
    fmt::print(stderr, "fault_injection: {}\n", render(problem));
  return problem ? 1 : 0;
}
