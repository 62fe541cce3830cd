// An algorithm of one's own: an all-gather in which the ranks swap their blocks in pairs, as in a tournament. It is
// registered beside those that are built in, proved for worlds of 1 to 16 ranks, and refuted where one step is wrong.
//
//   build/release/examples/my_algorithm
//
// prints
//
//   swap, 4 ranks: proved; rank 0 sends 9 elements in 3 messages, in 4 rounds
//   swap, 1 to 16 ranks: 16 proofs hold
//   with a mistake:
//   rank 2, after its last round: output[9, 12) holds nothing; it must hold the input of rank 3 from element 0 on
//
// `ringmaster prove` says the same of what is built in, or in a file (docs/schedule_format.md).
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/version_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>

using namespace ringmaster;

namespace {

constexpr uint64_t count = 3; // elements of a rank's block

/// Whom a rank meets in a round, as in a tournament where everybody plays everybody: the sum of the two is the round's
/// number modulo the world size. Whoever would meet itself has a break.
uint32_t opponent(uint32_t rank, uint32_t round, uint32_t world_size) {
  return (round + world_size - rank) % world_size;
}

schedule plan_swap(const plan_request& request) {
  const auto n = request.world_size;
  const auto cut = blocks::of(proto::ALL_GATHER, request, request.rank);
  block_range own{buffer::input, 0, cut.count(request.rank)};
  schedule_builder steps{request};
  for (uint32_t round = 0; round < n; ++round) {
    auto peer = opponent(request.rank, round, n);
    if (peer == request.rank) {
      steps.copy(round, own, cut.at(buffer::output, request.rank));
      continue;
    }
    steps.send(round, peer, own);
    steps.recv(round, peer, cut.at(buffer::output, peer));
  }
  return steps.take(n);
}

algorithm_cost cost_of_swap(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::ALL_GATHER, request, 0);
  uint64_t largest = 0;
  for (uint32_t rank = 0; rank < n; ++rank)
    largest = std::max(largest, cut.count(rank));
  const auto one_after_the_other = n == 2 ? 1 : n; // a pair has its break in the same round
  return {.rounds = n,
          .elements = (n - 1) * largest,
          .messages = n - 1,
          .latencies = one_after_the_other,
          .serial_elements = one_after_the_other * largest};
}

/// What the schedules of all ranks come to; `spoil` may change them before.
proof prove_swap(uint32_t world_size, void (*spoil)(std::vector<schedule>&) = nullptr) {
  plan_request request{.world_size = world_size, .count = count};
  std::vector<schedule> ranks;
  for (request.rank = 0; request.rank < world_size; ++request.rank)
    ranks.push_back(*plan(proto::ALL_GATHER, "swap", request));
  if (spoil != nullptr)
    spoil(ranks);
  return prove(proto::ALL_GATHER, request, ranks);
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const std::string option = argv[1];
    if (option == "--help" || option == "-h" || option == "--version") {
      fmt::print("{}", option == "--version"
                         ? version_text("my_algorithm")
                         : "usage: my_algorithm\n\nRegisters an algorithm of your own, and proves it.\n");
      return 0;
    }
    fmt::print(stderr, "my_algorithm: \"{}\" is no option here; there are --help and --version\n", option);
    return 2;
  }
  auto problem = register_algorithm({"swap", proto::ALL_GATHER, "N rounds of one block", plan_swap, cost_of_swap});
  if (problem) {
    fmt::print(stderr, "my_algorithm: {}\n", render(problem));
    return 1;
  }
  auto found = prove_swap(4);
  fmt::print("swap, 4 ranks: {}; rank 0 sends {} elements in {} messages, in {} rounds\n",
             found.fault ? render(found.fault) : "proved", found.elements_sent[0], found.messages_sent[0],
             found.rounds);
  uint32_t held = 0;
  for (uint32_t world_size = 1; world_size <= 16; ++world_size)
    held += prove_swap(world_size).fault ? 0 : 1;
  fmt::print("swap, 1 to 16 ranks: {} proofs hold\n", held);
  auto mistaken = prove_swap(4, [](std::vector<schedule>& ranks) {
    ranks[2].steps[2].destination.offset = count; // what comes from rank 3, where rank 1's belongs
  });
  fmt::print("with a mistake:\n{}\n", render(mistaken.fault));
  return !found.fault && held == 16 && mistaken.fault ? 0 : 1;
}
