#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t count = 8;

std::vector<schedule> good(std::string_view name = "ring") {
  std::vector<schedule> ranks;
  for (uint32_t rank = 0; rank < 4; ++rank)
    ranks.push_back(*plan(proto::ALL_REDUCE, name, {.world_size = 4, .rank = rank, .count = count}));
  return ranks;
}

/// What the interpreter finds in every order of events that it tries.
bool finds(const std::vector<schedule>& ranks, std::string_view what) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto fault = prove_all_reduce(ranks, count, seed).fault;
    CAPTURE(fault);
    CHECK(fault.find(what) != std::string::npos);
    if (fault.find(what) == std::string::npos)
      return false;
  }
  return true;
}

} // namespace

TEST_CASE("schedule interpreter: a block that is swapped for another leaves a wrong sum") {
  auto ranks = good();
  ranks[1].steps[0].source.offset = 0; // rank 1 sends block 0 in place of its own
  CHECK(finds(ranks, "does not hold each rank's element once"));
}

TEST_CASE("schedule interpreter: a missing send is a deadlock") {
  auto ranks = good();
  ranks[2].steps.erase(ranks[2].steps.end() - 2);
  CHECK(finds(ranks, "deadlock: "));
}

TEST_CASE("schedule interpreter: a missing receive is a deadlock of the sender") {
  auto ranks = good("naive");
  ranks[3].steps.pop_back();
  CHECK(finds(ranks, "deadlock: rank 0 in round 3"));
}

TEST_CASE("schedule interpreter: a ring that sends before it receives is a deadlock without buffers") {
  auto ranks = good();
  for (auto& rank : ranks)
    for (size_t i = 0; i < rank.steps.size(); ++i)
      rank.steps[i].round = static_cast<uint32_t>(i);
  for (auto& rank : ranks)
    rank.rounds = 12;
  CHECK(finds(ranks, "deadlock: rank 0 in round 0, rank 1 in round 0, rank 2 in round 0, rank 3 in round 0"));
}

TEST_CASE("schedule interpreter: a range that is written while it may still be read is found") {
  auto ranks = good();
  for (auto& step : ranks[0].steps)
    step.round /= 2; // two rounds at once
  CHECK(finds(ranks, "rank 0, round 0: output[6, 8) is written while it may still be read"));
}

TEST_CASE("schedule interpreter: a range that two steps write is found") {
  auto ranks = good("naive");
  ranks[0].steps[1].round = 0;
  ranks[0].steps[1].source = ranks[0].steps[0].source;
  CHECK(finds(ranks, "rank 0, round 0: output[0, 8) is written twice"));
}

TEST_CASE("schedule interpreter: a source that overlaps its destination is found") {
  auto ranks = good("naive");
  ranks[0].steps[1].source = {buffer::output, 0, 4};
  ranks[0].steps[1].destination = {buffer::output, 2, 4};
  CHECK(finds(ranks, "rank 0, round 1: output[2, 6) overlaps its own source output[0, 4)"));
}

TEST_CASE("schedule interpreter: a range out of bounds is found, where it wraps around, too") {
  auto ranks = good();
  ranks[1].steps.back().destination.offset = 7;
  CHECK(finds(ranks, "output[7, 9) is out of bounds, there are 8 elements"));
  ranks[1].steps.back().destination.offset = UINT64_MAX;
  CHECK(finds(ranks, "is out of bounds"));
  ranks[1].steps.back().destination = {buffer::scratch, 0, 2};
  CHECK(finds(ranks, "scratch[0, 2) is out of bounds, there are 0 elements"));
}

TEST_CASE("schedule interpreter: blocks of different sizes do not meet") {
  auto ranks = good();
  ranks[1].steps.back().destination.count = 1;
  CHECK(finds(ranks, "sends 2 elements to rank 1, which expects 1 in round 5"));
}

TEST_CASE("schedule interpreter: a step without elements, a write to the input and a round too late are found") {
  auto empty = good();
  empty[0].steps[0].source.count = 0;
  CHECK(finds(empty, "rank 0, round 0: a step without elements"));
  auto input = good();
  input[3].steps[1].destination.where = buffer::input;
  CHECK(finds(input, "rank 3, round 0: writes input["));
  auto late = good();
  late[3].steps.back().round = 6;
  CHECK(finds(late, "rank 3: round 6 after round 5 of 6"));
}

TEST_CASE("schedule interpreter: a reduction that is not finished, or twice, is found") {
  auto unfinished = good();
  for (auto& step : unfinished[2].steps)
    step.finish = false;
  CHECK(finds(unfinished, "was finished 0 times"));
  auto twice = good("naive");
  twice[0].steps[0].finish = true;
  CHECK(finds(twice, "was finished 2 times"));
}
