// Ranks that call for themselves, as in an MPI or torch.distributed program: they split into a mesh, reduce along rows
// and columns, pass values around in a ring, and then make two mistakes on purpose.
//
//   build/release/examples/ranks                                       # four ranks in one process
//   build/release/caf-run --ranks 4 -- build/release/examples/ranks    # 4 processes, or mpirun -np 4, srun, torchrun
//
// prints
//
//   rows and columns: every rank has 6
//   ring: every rank has its neighbour's number
//   wrong count: rank 0 hears: all_reduce: the ranks' calls do not match, and nothing has been moved: count: 1 on ...
//   missing rank: rank 0 hears: rank 3 (device 0x4) has not called barrier #5; it last finished send_recv #4; ...
#include <ringmaster/process_group.hpp>

#include <cstdio>

using namespace ringmaster;
using namespace std::chrono_literals;

static expected<void> run_rank(rank_communicator& world) {
  const uint32_t rank = world.rank(), size = world.size(), last = size - 1;
  uint32_t columns = 1; // of the mesh that is nearest to a square
  while (columns * columns < size || size % columns != 0)
    ++columns;
  auto mine = world.allocate<float>(1).value(), next = world.allocate<float>(1).value();
  const std::vector number{static_cast<float>(rank)};

  mine.write(number).value();
  auto row = world.split(static_cast<int32_t>(rank / columns)).value();
  auto column = world.split(static_cast<int32_t>(rank % columns)).value();
  for (auto* part : {&*row, &*column})
    part->all_reduce(rank_buffers::at(mine), 1, datatype::float32).wait(10s).value();
  const auto sum = mine.read<float>().value()[0];

  mine.write(number).value();
  world.group_start(); // within a group the order of sends and receives does not matter
  world.send(mine.address(), 1, datatype::float32, (rank + 1) % size);
  world.receive(next.address(), 1, datatype::float32, (rank + last) % size);
  world.group_end().wait(10s).value();
  const auto neighbour = next.read<float>().value()[0];
  if (sum != static_cast<float>(size * last / 2) || neighbour != static_cast<float>((rank + last) % size))
    return error{errc::corrupt, "rank " + std::to_string(rank) + " has a wrong result"};

  const auto wrong = world.all_reduce(rank_buffers::at(mine), rank == last ? 2 : 1, datatype::float32).wait(10s);
  const auto missing = rank == last ? expected<void>{} : world.barrier({.timeout = 500ms}).wait(10s);
  if (rank == 0)
    std::printf("rows and columns: every rank has %g\nring: every rank has its neighbour's number\n"
                "wrong count: rank 0 hears: %s\nmissing rank: rank 0 hears: %s\n",
                sum, wrong.error().message.c_str(), missing.error().message.c_str());
  return {};
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](cluster& home) {
    auto world = process_group::join(home, 4).value(); // 4 ranks where no launcher gives a number
    world.run(run_rank).value();
    world.finalize().value();
  });
}
