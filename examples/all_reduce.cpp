// Four devices run one ring all-reduce; the result is compared with a serial sum.
//
//   build/release/examples/all_reduce
//   build/release/caf-run --local 2 -- build/release/examples/all_reduce    # on devices of two other processes
//
// prints
//
//   4 devices, 1000000 float64 each: SUCCESS
//   rank 0: 1000000 of 1000000 elements are right
//   ...
#include <ringmaster/client.hpp>

#include <cstdio>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  return ringmaster::run_main(argc, argv, [](ringmaster::cluster& home) {
    constexpr uint32_t ranks = 4;
    constexpr uint64_t count = 1'000'000;
    ringmaster::client client{home};
    auto communicator = client.make_communicator(ranks).value();
    auto buffers = communicator.allocate<double>(count).value();
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      std::vector<double> input(count);
      for (uint64_t i = 0; i < count; ++i)
        input[i] = static_cast<double>(rank * 1000 + i % 1000);
      buffers[rank].write(input).value();
    }
    communicator.all_reduce<double>(buffers, count, ringmaster::reduce_op::sum, "ring").value();
    communicator.wait(30s).value();
    std::printf("%u devices, %lu float64 each: SUCCESS\n", ranks, count);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      auto output = buffers[rank].read<double>().value();
      uint64_t right = 0;
      for (uint64_t i = 0; i < count; ++i)
        right += output[i] == 6000.0 + 4.0 * static_cast<double>(i % 1000);
      std::printf("rank %u: %lu of %lu elements are right\n", rank, right, count);
      if (right != count)
        throw std::runtime_error{"a result is wrong"};
    }
  });
}
