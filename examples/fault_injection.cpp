// Kills a device in the middle of a ring all-reduce and prints what happens: the communicator opens a new epoch on the
// survivors, and the operation runs again from their unchanged inputs.
//
//   build/release/examples/fault_injection
//
// prints (the coordinator chooses device numbers)
//
//   rank 2 will die after 3 of 6 rounds
//   status: SUCCESS, epoch 2, devices 0x1 0x2 0x4
//   why: rank 2 (device 0x3) crashed: killed on request, round 3 of 6 of operation #1 on communicator 1
//   every survivor holds 1 + 2 + 8 = 11
#include <ringmaster/client.hpp>

#include <algorithm>
#include <cstdio>

using namespace ringmaster;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](cluster& home) {
    constexpr uint32_t ranks = 4, victim = 2;
    constexpr uint64_t count = 100'000;
    client host{home};
    auto communicator = host.make_communicator(ranks).value();
    auto buffers = communicator.allocate<double>(count).value();
    for (uint32_t rank = 0; rank < ranks; ++rank)
      buffers[rank].write(std::vector<double>(count, 1 << rank)).value();
    host.inject(buffers[victim].device(), {.what = fault::kind::kill, .at_round = 3}).value();
    std::printf("rank %u will die after 3 of %u rounds\n", victim, 2 * (ranks - 1));
    communicator.all_reduce<double>(buffers, count, reduce_op::sum, "ring").value();
    const auto status = communicator.wait(std::chrono::seconds{30}).value();
    std::printf("status: SUCCESS, epoch %lu, devices", status.epoch.value);
    for (auto& device : status.devices)
      std::printf(" 0x%lx", device.id.value);
    std::printf("\nwhy: %s\n", status.event.c_str());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (rank == victim)
        continue;
      const auto output = buffers[rank].read<double>().value();
      if (!std::all_of(output.begin(), output.end(), [](double x) { return x == 11; }))
        throw std::runtime_error{"rank " + std::to_string(rank) + " has a wrong result"};
    }
    std::printf("every survivor holds 1 + 2 + 8 = 11\n");
  });
}
