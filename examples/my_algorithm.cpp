// An algorithm of your own: an all-gather in which ranks swap blocks in pairs, as in a tournament. It is registered,
// proved for worlds of 1 to 16 ranks, and refuted where one step is wrong. It prints
//   swap, 4 ranks: proved; rank 0 sends 9 elements in 3 messages, in 4 rounds
//   swap, 1 to 16 ranks: 16 proofs hold
//   with a mistake:
//   rank 2, after its last round: output[9, 12) holds nothing; it must hold the input of rank 3 from element 0 on
#include <ringmaster/algorithm.hpp>
#include <ringmaster/cluster.hpp>

#include <cstdio>

using namespace ringmaster;

constexpr auto kind = collective_kind::all_gather;
constexpr uint64_t count = 3; // elements of a rank's block

static schedule plan_swap(const plan_request& request) {
  const auto n = request.world_size;
  const auto cut = blocks::of(kind, request, request.rank);
  const block_range own{buffer::input, 0, request.count};
  schedule_builder steps{request};
  for (uint32_t round = 0; round < n; ++round) {
    const auto peer = (round + n - request.rank) % n; // the sum of the two is the round's number modulo n
    if (peer == request.rank) {
      steps.copy(round, own, cut.at(buffer::output, peer));
    } else {
      steps.send(round, peer, own);
      steps.recv(round, peer, cut.at(buffer::output, peer));
    }
  }
  return steps.take(n);
}

static algorithm_cost cost_of_swap(const plan_request& request) {
  const uint64_t n = request.world_size, serial = n == 2 ? 1 : n; // both ranks of a pair copy in the same round
  return {n, (n - 1) * request.count, n - 1, serial, serial * request.count};
}

static plan_request request_of(uint32_t ranks) {
  return {.world_size = ranks, .count = count};
}

static void run(cluster*, const program_arguments&) {
  register_algorithm({"swap", kind, "N rounds of one block", plan_swap, cost_of_swap}).value();
  uint32_t held = 0;
  for (uint32_t n = 1; n <= 16; ++n)
    held += prove(kind, request_of(n), plan_all(kind, "swap", request_of(n)).value()).holds;
  auto ranks = plan_all(kind, "swap", request_of(4)).value();
  const auto found = prove(kind, request_of(4), ranks);
  std::printf("swap, 4 ranks: %s; rank 0 sends %lu elements in %lu messages, in %u rounds\n",
              found.holds ? "proved" : found.fault.c_str(), found.elements_sent[0], found.messages_sent[0],
              found.rounds);
  std::printf("swap, 1 to 16 ranks: %u proofs hold\n", held);
  ranks[2].steps[2].destination.offset = count; // what comes from rank 3, where rank 1's block belongs
  std::printf("with a mistake:\n%s\n", prove(kind, request_of(4), ranks).fault.c_str());
}

int main(int argc, char** argv) {
  return run_main(argc, argv, {.about = "Registers an algorithm and proves it.", .needs_cluster = false}, run);
}
