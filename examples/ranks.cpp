// Ranks that call for themselves, each with a handle of its own, as in an MPI or torch.distributed program: they split
// into a mesh, reduce along rows and columns, pass blocks around in a ring, and then do two things wrong on purpose.
// The same program runs as threads of one process, or as a process for each rank.
//
//   build/release/examples/ranks                                            # four ranks in one process
//   build/release/caf-run --local 2 -- build/release/examples/ranks         # their devices in 2 node processes
//   build/release/caf-run --ranks 4 -- build/release/examples/ranks         # 4 processes, each a rank and its device
//   mpirun -np 4 build/release/examples/ranks                               # the same; or srun, or torchrun
//
// prints
//
//   rows and columns: every rank has 6
//   ring: every rank has its neighbour's number
//   wrong count: rank 0 hears: all_reduce: the ranks' calls do not match, and nothing has been moved: count: 1 on ...
//   missing rank: rank 0 hears: rank 3 (device 0x4) has not called barrier #5; it last finished send_recv #4; ...
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/process_group.hpp"
#include "runtime/configuration/places.hpp"

#include <fmt/format.h>

#include <thread>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t ranks_alone = 4; // where no launcher says how many

/// What one rank has found.
struct findings {
  caf::error problem;
  float mesh = 0;
  float ring = 0;
  std::string wrong_count;
  std::string missing_rank;
};

/// Of the mesh that is nearest to a square.
uint32_t columns_of(uint32_t size) {
  uint32_t columns = 1;
  while (columns * columns < size || size % columns != 0)
    ++columns;
  return columns;
}

caf::error run_rank(client& host, rank_communicator& world, findings& found) {
  auto rank = world.rank(), size = world.size();
  auto device = id_of(world.device());
  auto memory = host.allocate(device, 3 * sizeof(float));
  if (!memory)
    return memory.error();
  auto mine = *memory, next = mine + sizeof(float);
  if (auto problem = host.copy_to_device(device, mine, byte_block::of(std::vector{static_cast<float>(rank)})))
    return problem;

  // Of four, a row is {0, 1} or {2, 3}, a column {0, 2} or {1, 3}: the sums of the sums are everybody's.
  auto columns = columns_of(size);
  auto row = world.split(static_cast<int32_t>(rank / columns));
  auto column = row ? world.split(static_cast<int32_t>(rank % columns)) : std::move(row);
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
  call_group group{{&world}};
  world.send(mine, 1, proto::FLOAT32, (rank + 1) % size);
  world.receive(next, 1, proto::FLOAT32, (rank + size - 1) % size);
  if (auto problem = group.end().wait(10s))
    return problem;
  auto got = host.copy_to_host(device, next, sizeof(float));
  if (!got)
    return got.error();
  found.ring = got->as<float>()[0];

  auto last = size - 1;
  found.wrong_count = render(world.all_reduce(rank_buffers::at(mine), rank == last ? 2 : 1, proto::FLOAT32).wait(10s));
  if (rank != last)
    found.missing_rank = render(world.barrier({.timeout = 500ms}).wait(10s));
  return caf::none;
}

caf::error check(const findings& x, uint32_t rank, uint32_t size) {
  if (x.problem)
    return x.problem;
  auto all = static_cast<float>(size * (size - 1) / 2), neighbour = static_cast<float>((rank + size - 1) % size);
  if (x.mesh == all && x.ring == neighbour && !x.wrong_count.empty() && x.missing_rank.empty() == (rank == size - 1))
    return caf::none;
  return make_error(errc::corrupt, fmt::format("rank {} has {} and {}", rank, x.mesh, x.ring));
}

caf::error run(caf::actor_system& system, const options& opts) {
  auto world = process_group::init(system, opts, ranks_alone);
  if (!world)
    return world.error();
  auto size = (*world)->size();
  if (size < 2)
    return make_error(errc::invalid_argument, "it takes 2 ranks at least to send to each other");
  auto& ranks = (*world)->ranks(); // those that this process plays
  std::vector<findings> all(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      client host{system, (*world)->coordinator()};
      all[i].problem = run_rank(host, ranks[i], all[i]);
    });
  for (auto& thread : threads)
    thread.join();
  for (size_t i = 0; i < ranks.size(); ++i)
    if (auto problem = check(all[i], ranks[i].rank(), size))
      return problem;
  if ((*world)->plays(0)) {
    fmt::print("rows and columns: every rank has {}\n", all[0].mesh);
    fmt::print("ring: every rank has its neighbour's number\n");
    fmt::print("wrong count: rank 0 hears: {}\n", all[0].wrong_count);
    fmt::print("missing rank: rank 0 hears: {}\n", all[0].missing_rank);
  }
  return (*world)->finalize();
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
  problem = run(system, opts);
  if (problem)
    fmt::print(stderr, "ranks: {}\n", render(problem));
  return problem ? 1 : 0;
}
