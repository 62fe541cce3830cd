// Four ranks, each in a thread of its own with a handle of its own, as in an MPI or torch.distributed program: they
// split into a 2 x 2 mesh, reduce along rows and columns, pass blocks around in a ring, and then do two things wrong on
// purpose.
//
//   build/release/examples/ranks                                            # in one process
//   build/release/caf-run --local 2 -- build/release/examples/ranks         # devices in 2 node processes
//
// prints
//
//   rows and columns: every rank has 6
//   ring: every rank has its neighbour's number
//   wrong count: rank 0 hears: all_reduce: the ranks' calls do not match, and nothing has been moved: count: 1 on ...
//   missing rank: rank 0 hears: rank 3 (device 0x4) has not called barrier #5; it last finished send_recv #4; ...
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "client/rank_communicator.hpp"
#include "runtime/configuration/places.hpp"

#include <fmt/format.h>

#include <array>
#include <thread>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t ranks = 4;

/// What one rank's thread has found.
struct findings {
  caf::error problem;
  float mesh = 0;
  float ring = 0;
  std::string wrong_count;
  std::string missing_rank;
};

caf::error run_rank(caf::actor_system& system, const coordinator_actor& coordinator, communicator_id comm,
                    uint32_t rank, findings& found) {
  auto world = rank_communicator::attach(system, coordinator, comm, rank);
  if (!world)
    return world.error();
  client host{system, coordinator};
  auto device = id_of(world->device());
  auto memory = host.allocate(device, 3 * sizeof(float));
  if (!memory)
    return memory.error();
  auto mine = *memory, next = mine + sizeof(float);
  if (auto problem = host.copy_to_device(device, mine, byte_block::of(std::vector{static_cast<float>(rank)})))
    return problem;

  // A row is {0, 1} or {2, 3}, a column {0, 2} or {1, 3}: the sums of the sums are everybody's.
  auto row = world->split(static_cast<int32_t>(rank / 2));
  auto column = row ? world->split(static_cast<int32_t>(rank % 2)) : std::move(row);
  if (!column)
    return column.error();
  for (auto part : {&*row, &*column})
    if (auto problem = (*part)->all_reduce(rank_buffers::at(mine), 1, proto::FLOAT32).wait(10s))
      return problem;
  for (auto part : {&*row, &*column})
    if ((*part)->rank() == 0) // its operation has ended, for all of its ranks
      if (auto problem = host.destroy((*part)->id()))
        return problem;
  auto sum = host.copy_to_host(device, mine, sizeof(float));
  if (!sum)
    return sum.error();
  found.mesh = sum->as<float>()[0];

  // Everybody sends and receives at once: within a group their order does not matter.
  if (auto problem = host.copy_to_device(device, mine, byte_block::of(std::vector{static_cast<float>(rank)})))
    return problem;
  call_group group{{&*world}};
  world->send(mine, 1, proto::FLOAT32, (rank + 1) % ranks);
  world->receive(next, 1, proto::FLOAT32, (rank + ranks - 1) % ranks);
  if (auto problem = group.end().wait(10s))
    return problem;
  auto got = host.copy_to_host(device, next, sizeof(float));
  if (!got)
    return got.error();
  found.ring = got->as<float>()[0];

  found.wrong_count = render(world->all_reduce(rank_buffers::at(mine), rank == 2 ? 2 : 1, proto::FLOAT32).wait(10s));
  if (rank != 3)
    found.missing_rank = render(world->barrier({.timeout = 500ms}).wait(10s));
  return caf::none;
}

caf::error run(caf::actor_system& system, const coordinator_actor& coordinator) {
  client host{system, coordinator};
  if (auto there = host.devices(ranks, 10s); !there)
    return there.error();
  auto comm = host.comm_init(ranks);
  if (!comm)
    return comm.error();
  std::array<findings, ranks> all;
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      all[rank].problem = run_rank(system, coordinator, id_of(*comm), rank, all[rank]);
    });
  for (auto& thread : threads)
    thread.join();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto& x = all[rank];
    if (x.problem)
      return x.problem;
    if (x.mesh != 6 || x.ring != static_cast<float>((rank + ranks - 1) % ranks) || x.wrong_count.empty()
        || x.missing_rank.empty() != (rank == 3))
      return make_error(errc::corrupt, fmt::format("rank {} has {} and {}", rank, x.mesh, x.ring));
  }
  fmt::print("rows and columns: every rank has {}\n", all[0].mesh);
  fmt::print("ring: every rank has its neighbour's number\n");
  fmt::print("wrong count: rank 0 hears: {}\n", all[0].wrong_count);
  fmt::print("missing rank: rank 0 hears: {}\n", all[0].missing_rank);
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
    fmt::print(stderr, "ranks: {}\n", render(problem));
    return code_of(problem) == errc::io_error ? 1 : 2; // 2: what the command line or the file says cannot be
  }
  auto opts = cfg.values();
  opts.log.level = "warn"; // this program tells it itself
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts); // of our own, or the one that caf-run has started
  problem = home ? run(system, (*home)->coordinator()) : home.error();
  if (problem)
    fmt::print(stderr, "ranks: {}\n", render(problem));
  return problem ? 1 : 0;
}
