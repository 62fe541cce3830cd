// Tensor parallelism by hand: four ranks share two layers as Megatron-LM cuts them; the results are compared with those
// of one rank, and the bytes that the ranks sent with those that the cluster counted.
//
//   build/release/examples/tensor_parallel
//   build/release/caf-run --local 4 -- build/release/examples/tensor_parallel    # devices of 4 node processes
//
// prints
//
//   Megatron's pair: the output              [8 x 8]       [8 x 4]              192
//   ...
//   all results are right; the ranks have sent 3072 bytes, and the cluster has counted 3072
#include <ringmaster/client.hpp>
#include <ringmaster/tensor_parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>

using namespace ringmaster;

/// Small whole numbers, so that sums are exact in any order.
static tensor numbers(uint64_t rows, uint64_t columns, uint64_t seed) {
  tensor result{{rows, columns}, std::vector<float>(rows * columns)};
  for (uint64_t i = 0; i < result.values.size(); ++i)
    result.values[i] = static_cast<float>((seed + 5 * i + i / 7) % 7) - 3;
  return result;
}

static void check(const char* what, uint32_t rank, const tensor& in, const tensor& out, const tensor& right,
                  uint64_t bytes) {
  if (out != right)
    throw std::runtime_error{std::string{what} + ": rank " + std::to_string(rank) + " has a wrong result"};
  if (rank == 0)
    std::printf("%-40s %-13s %-13s %10lu\n", what, in.shape_text().c_str(), out.shape_text().c_str(), bytes);
}

static void run_rank(rank_communicator& self, std::atomic<uint64_t>& sent) {
  tensor_group group{self};
  const auto n = group.size(), me = group.rank();
  const auto x = numbers(8, 8, 6), v = numbers(8, 16, 1), w = numbers(16, 4, 3);
  auto hidden = linear_forward(x, v).value(); // what one rank computes alone
  for (auto& each : hidden.values)
    each = std::max(each, 0.F);
  const megatron_pair mine{part_of_last_axis(v, me, n).value(), {}, part_of_first_axis(w, me, n).value(), {}};
  const auto output = pair_forward(group, mine, x).value();
  check("Megatron's pair: the output", me, x, output.y, linear_forward(hidden, w).value(), group.bytes_sent());
  sent += group.bytes_sent();
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](cluster& home) {
    auto world = process_group::join(home, 4).value();
    std::atomic<uint64_t> sent = 0;
    world.run([&](rank_communicator& self) { return run_rank(self, sent), expected<void>{}; }).value();
    const auto counted = client{home}.bytes_received(world.ranks()[0].id()).value();
    std::printf("all results are right; the ranks have sent %lu bytes, and the cluster has counted %lu\n", sent.load(),
                counted);
    world.finalize().value();
  });
}
