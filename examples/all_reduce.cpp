// The course's program, as a user writes it: four devices, one ring all-reduce, the result compared with a serial sum.
//
//   build/release/examples/all_reduce
//
// prints
//
//   4 devices, 1000000 float64 each: SUCCESS
//   rank 0: 1000000 of 1000000 elements are right
//   rank 1: 1000000 of 1000000 elements are right
//   rank 2: 1000000 of 1000000 elements are right
//   rank 3: 1000000 of 1000000 elements are right
//
// Under `caf-run --local 2 -- build/release/examples/all_reduce` the same program uses the devices of two other
// processes.
#include "actors/calls/answers.hpp"
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "runtime/configuration/places.hpp"

#include <fmt/format.h>

using namespace ringmaster;

namespace {

constexpr uint32_t ranks = 4;
constexpr uint64_t count = 1'000'000;

caf::error run(client& host) {
  auto comm = host.comm_init(ranks);
  if (!comm)
    return comm.error();
  gpu_sim::AllReduceRingRequest request;
  request.set_commid(comm->commid());
  request.set_count(count);
  request.set_op(gpu_sim::SUM);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto& device = comm->devices(static_cast<int>(rank));
    auto address = host.allocate(id_of(device), count * sizeof(double));
    if (!address)
      return address.error();
    std::vector<double> input(count);
    for (uint64_t i = 0; i < count; ++i)
      input[i] = static_cast<double>(rank * 1000 + i % 1000);
    if (auto problem = host.copy_to_device(id_of(device), *address, byte_block::of(std::move(input))))
      return problem;
    (*request.mutable_memaddrs())[rank].set_value(*address);
  }
  if (auto problem = host.group_start(id_of(*comm)))
    return problem;
  if (auto sequence = host.all_reduce_ring(request); !sequence)
    return sequence.error();
  if (auto problem = host.group_end(id_of(*comm)))
    return problem;
  auto status = host.wait(id_of(*comm), std::chrono::seconds{30});
  if (!status)
    return status.error();
  if (status->status() != gpu_sim::SUCCESS)
    return error_in(*status);
  fmt::print("{} devices, {} float64 each: {}\n", ranks, count, gpu_sim::Status_Name(status->status()));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto device = id_of(comm->devices(static_cast<int>(rank)));
    auto output = host.copy_to_host(device, request.memaddrs().at(rank).value(), count * sizeof(double));
    if (!output)
      return output.error();
    uint64_t right = 0;
    for (uint64_t i = 0; i < count; ++i)
      right += output->as<double>()[i] == 6000.0 + 4.0 * static_cast<double>(i % 1000);
    fmt::print("rank {}: {} of {} elements are right\n", rank, right, count);
    if (right != count)
      return make_error(errc::corrupt, "a result is wrong");
  }
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
    fmt::print(stderr, "all_reduce: {}\n", render(problem));
    return code_of(problem) == errc::io_error ? 1 : 2; // 2: what the command line or the file says cannot be
  }
  auto opts = cfg.values();
  opts.log.level = "warn"; // this program tells it itself
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts); // of our own, or the one that caf-run has started
  if (home) {
    client host{system, (*home)->coordinator()};
    problem = run(host);
  } else {
    problem = home.error();
  }
  if (problem)
    fmt::print(stderr, "all_reduce: {}\n", render(problem));
  return problem ? 1 : 0;
}
