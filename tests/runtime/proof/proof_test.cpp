#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"

#include "messages/errc.hpp"
#include "tests/support/schedule_interpreter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>

using namespace ringmaster;

namespace {

constexpr plan_request four_ranks{.world_size = 4, .count = 8};

/// A correct all-reduce; the tests plant a fault.
std::vector<schedule> good(std::string_view name = "ring") {
  std::vector<schedule> ranks;
  for (uint32_t rank = 0; rank < 4; ++rank)
    ranks.push_back(*plan(proto::ALL_REDUCE, name, {.world_size = 4, .rank = rank, .count = four_ranks.count}));
  return ranks;
}

/// The message of the fault; empty for none.
std::string fault_of(const std::vector<schedule>& ranks, uint64_t seed = 1) {
  const auto fault = prove(proto::ALL_REDUCE, four_ranks, ranks, seed).fault;
  return fault ? render(fault) : "";
}

/// The fault is found, and it is the same one in whatever order things happen.
void check_fault(const std::vector<schedule>& ranks, std::string_view fault) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    CHECK(fault_of(ranks, seed) == fault);
}

step& step_of(schedule& rank, uint32_t round, action what) {
  for (auto& x : rank.steps)
    if (x.round == round && x.what == what)
      return x;
  FAIL("there is no such step");
  return rank.steps[0];
}

block_range output(uint64_t first, uint64_t count) {
  return {buffer::output, first, count};
}

step send(uint32_t round, uint32_t peer, block_range source) {
  return {.what = action::send, .round = round, .peer = peer, .source = source};
}

step recv(uint32_t round, uint32_t peer, block_range destination) {
  return {.what = action::recv, .round = round, .peer = peer, .destination = destination};
}

} // namespace

TEST_CASE("proof: schedules without a fault are proved, and counted") {
  auto found = prove(proto::ALL_REDUCE, four_ranks, good("naive"));
  CHECK_MESSAGE(!found.fault, render(found.fault));
  CHECK(found.rounds == 4);
  CHECK(found.elements_sent == std::vector<uint64_t>{24, 8, 8, 8});
  CHECK(found.messages_sent == std::vector<uint64_t>{3, 1, 1, 1});
  CHECK(found.elements_received == std::vector<uint64_t>{24, 8, 8, 8});
  CHECK(found.messages_received == std::vector<uint64_t>{3, 1, 1, 1});
}

TEST_CASE("proof: a block in place of another's is found where it is combined") {
  auto ranks = good();
  ranks[1].steps[0].source.offset = 0; // rank 1 sends block 0 in place of its own
  check_fault(ranks, "rank 2, round 0, step 1 (recv_reduce of output[2, 4) from rank 1): combines the input of rank 1 "
                     "from element 0 on with the input of rank 2 from element 2 on");
}

TEST_CASE("proof: a block that goes to the wrong place is found in the output") {
  auto ranks = good("naive");
  ranks[0].steps.back().source = output(0, 4); // the first half twice
  ranks[0].steps.push_back(ranks[0].steps.back());
  ranks[3].steps.back().destination = output(0, 4);
  ranks[3].steps.push_back(recv(3, 0, output(4, 4)));
  check_fault(ranks, "rank 3, after its last round: output[4, 8) holds the finished reduction of ranks 0 to 3 from "
                     "element 0 on; it must hold the finished reduction of ranks 0 to 3 from element 4 on");
}

TEST_CASE("proof: an output that no rank writes is found") {
  auto ranks = good("naive");
  ranks[0].steps.pop_back();
  ranks[3].steps.pop_back();
  check_fault(ranks, "rank 3, after its last round: output[0, 8) holds nothing; it must hold the finished reduction of "
                     "ranks 0 to 3 from element 0 on");
}

TEST_CASE("proof: reading what no rank has written is found") {
  auto ranks = good();
  ranks[2].steps[0].source.where = buffer::output;
  check_fault(ranks, "rank 3, round 0, step 1 (recv_reduce of output[4, 6) from rank 2): reads output[4, 6) of rank 2, "
                     "where no rank has written element 4");
}

TEST_CASE("proof: a step that is missing leaves its partner alone") {
  auto ranks = good();
  ranks[2].steps.erase(ranks[2].steps.end() - 2); // a send
  check_fault(ranks, "rank 3, round 5, step 11 (recv of output[2, 4) from rank 2): rank 2 sends nothing more that it "
                     "could take");
}

TEST_CASE("proof: a message that is left over is found") {
  auto ranks = good("naive");
  ranks[3].steps.pop_back();
  check_fault(ranks, "rank 0, round 3, step 5 (send of output[0, 8) to rank 3): left over: rank 3 takes nothing more "
                     "from it");
}

TEST_CASE("proof: a contribution that is reduced twice is found") {
  auto ranks = good("naive");
  ranks[1].rounds = ranks[2].rounds = ranks[3].rounds = ranks[0].rounds = 5;
  ranks[1].steps.insert(ranks[1].steps.begin() + 1, send(1, 0, {buffer::input, 0, 8}));
  for (auto& x : ranks[0].steps)
    x.round += x.round > 0 ? 1 : 0; // rank 1's comes again in round 1
  ranks[0].steps.insert(
    ranks[0].steps.begin() + 1,
    {.what = action::recv_reduce, .round = 1, .peer = 1, .source = output(0, 8), .destination = output(0, 8)});
  check_fault(ranks, "rank 0, round 1, step 1 (recv_reduce of output[0, 8) from rank 1): combines the input of rank 1 "
                     "from element 0 on with the unfinished reduction of ranks 0 to 1 from element 0 on: rank 1 would "
                     "count twice");
}

TEST_CASE("proof: a reduction that no rank finishes is found") {
  auto ranks = good();
  step_of(ranks[2], 2, action::recv_reduce).finish = false; // block 3
  check_fault(ranks, "rank 0, after its last round: output[6, 8) holds the unfinished reduction of ranks 0 to 3 from "
                     "element 6 on; it must hold the finished reduction of ranks 0 to 3 from element 6 on");
}

TEST_CASE("proof: a reduction that is finished too early or twice is found") {
  auto early = good("naive");
  early[0].steps[0].finish = true;
  check_fault(early, "rank 0, round 0, step 0 (recv_reduce of output[0, 8) from rank 1): finishes the unfinished "
                     "reduction of ranks 0 to 1 from element 0 on");
  auto twice = good("naive");
  twice[2].steps.back().finish = true;
  check_fault(twice, "rank 2, round 3, step 1 (recv of output[0, 8) from rank 0): finishes the finished reduction of "
                     "ranks 0 to 3 from element 0 on");
}

TEST_CASE("proof: peers that are swapped are found") {
  auto ranks = good("naive");
  std::swap(ranks[0].steps[0].peer, ranks[0].steps[1].peer); // rank 2's first: another order, the same sum
  CHECK(fault_of(ranks) == "");
  ranks = good();
  std::swap(ranks[0].steps[0].peer, ranks[0].steps[1].peer);
  check_fault(ranks, "rank 0, round 0, step 1 (recv_reduce of output[6, 8) from rank 1): rank 1 sends nothing more "
                     "that it could take");
  ranks[0].steps[0].peer = 4;
  check_fault(ranks, "rank 0, round 0, step 0 (send of input[0, 2) to rank 4): rank 4 is no peer for it");
}

TEST_CASE("proof: a deadlock names who waits for whom") {
  auto ranks = good();
  for (auto& rank : ranks) { // all send before they receive, and no rank reads
    rank.rounds = 12;
    for (uint32_t i = 0; i < 12; ++i)
      rank.steps[i].round = i;
  }
  check_fault(ranks, "deadlock: rank 0, round 0, step 0 (send of input[0, 2) to rank 1) waits for rank 1, "
                     "rank 1, round 0, step 0 (send of input[2, 4) to rank 2) waits for rank 2, "
                     "rank 2, round 0, step 0 (send of input[4, 6) to rank 3) waits for rank 3, "
                     "rank 3, round 0, step 0 (send of input[6, 8) to rank 0) waits for rank 0");
}

TEST_CASE("proof: a deadlock within a chain of one round is found") {
  std::vector<schedule> ranks(2);
  for (uint32_t rank : {0u, 1u}) {
    ranks[rank].rounds = 1;
    ranks[rank].steps = {send(0, 1 - rank, {buffer::input, 0, 1}),
                         recv(0, 1 - rank, output(1 - rank, 1)),
                         {.what = action::copy,
                          .round = 0,
                          .peer = rank,
                          .source = {buffer::input, 0, 1},
                          .destination = output(rank, 1)}};
  }
  plan_request request{.world_size = 2, .count = 1};
  CHECK_FALSE(prove(proto::ALL_GATHER, request, ranks).fault);
  ranks[0].steps[1].then = true;
  CHECK_FALSE(prove(proto::ALL_GATHER, request, ranks).fault);
  ranks[1].steps[1].then = true; // now each reads when its own block has been read
  CHECK(render(prove(proto::ALL_GATHER, request, ranks).fault)
        == "deadlock: rank 0, round 0, step 0 (send of input[0, 1) to rank 1) waits for rank 1, "
           "rank 1, round 0, step 0 (send of input[0, 1) to rank 0) waits for rank 0");
}

TEST_CASE("proof: a range that is written while it may still be read is found, but in a chain") {
  auto ranks = good();
  for (auto& x : ranks[0].steps)
    x.round /= 2; // two rounds at once
  check_fault(ranks, "rank 0, round 0, step 1 (recv_reduce of output[6, 8) from rank 3): output[6, 8) is written while "
                     "it may still be read by step 2 (send of output[6, 8) to rank 1)");
  ranks = good("naive");
  for (auto& rank : ranks) {
    rank.rounds = 1;
    for (auto& x : rank.steps) {
      x.round = 0;
      x.then = &x != &rank.steps[0];
    }
  }
  check_fault(ranks, "");
  ranks[0].steps[3].then = false;
  check_fault(ranks, "rank 0, round 0, step 0 (recv_reduce of output[0, 8) from rank 1): output[0, 8) is written while "
                     "it may still be read by step 3 (send of output[0, 8) to rank 1)");
}

TEST_CASE("proof: a range that two steps of a round write is found") {
  auto ranks = good("naive");
  ranks[0].steps[1].round = 0;
  ranks[0].steps[1].source = ranks[0].steps[0].source;
  check_fault(ranks, "rank 0, round 0, step 1 (recv_reduce of output[0, 8) from rank 2): output[0, 8) is written twice "
                     "in this round, by step 0 (recv_reduce of output[0, 8) from rank 1), too");
}

TEST_CASE("proof: a source that overlaps its own destination is found") {
  auto ranks = good("naive");
  ranks[0].steps[1].source = output(0, 4);
  ranks[0].steps[1].destination = output(2, 4);
  check_fault(ranks, "rank 0, round 1, step 1 (recv_reduce of output[2, 6) from rank 2): output[2, 6) overlaps its own "
                     "source output[0, 4)");
}

TEST_CASE("proof: a range out of bounds is found, where it wraps around, too") {
  auto ranks = good();
  auto& last = ranks[1].steps.back().destination;
  last.offset = 7;
  check_fault(ranks, "rank 1, round 5, step 11 (recv of output[7, 9) from rank 0): output[7, 9) is out of bounds, "
                     "there are 8 elements");
  last.offset = UINT64_MAX;
  CHECK(fault_of(ranks).find("is out of bounds, there are 8 elements") != std::string::npos);
  last = {buffer::scratch, 0, 2};
  check_fault(ranks, "rank 1, round 5, step 11 (recv of scratch[0, 2) from rank 0): scratch[0, 2) is out of bounds, "
                     "there are 0 elements");
}

TEST_CASE("proof: blocks of different sizes do not meet") {
  auto ranks = good();
  ranks[1].steps.back().destination.count = 1;
  check_fault(ranks, "rank 0, round 5, step 10 (send of output[6, 8) to rank 1): 2 elements meet 1 of rank 1, round 5, "
                     "step 11 (recv of output[6, 7) from rank 0)");
  ranks = good();
  ranks[1].steps[1].source.count = 1;
  check_fault(ranks, "rank 1, round 0, step 1 (recv_reduce of output[0, 2) from rank 0): input[0, 1) does not fit "
                     "output[0, 2)");
}

TEST_CASE("proof: a write to the input is found") {
  auto ranks = good();
  ranks[3].steps[1].destination.where = buffer::input;
  check_fault(ranks,
              "rank 3, round 0, step 1 (recv_reduce of input[4, 6) from rank 2): writes input[4, 6), and no rank "
              "writes an input");
}

TEST_CASE("proof: steps that are empty, of no round or behind nothing are found") {
  auto empty = good();
  empty[0].steps[0].source.count = 0;
  check_fault(empty, "rank 0, round 0, step 0 (send of input[0, 0) to rank 1): a step without elements");
  auto late = good();
  late[3].steps.back().round = 6;
  check_fault(late, "rank 3, round 6, step 11 (recv of output[2, 4) from rank 2): round 6 after round 5 of 6");
  auto unsorted = good();
  std::swap(unsorted[2].steps[1], unsorted[2].steps[2]);
  check_fault(unsorted, "rank 2, round 0, step 2 (recv_reduce of output[2, 4) from rank 1): round 0 after round 1 "
                        "of 6");
  auto behind = good();
  behind[1].steps[2].then = true;
  check_fault(behind, "rank 1, round 1, step 2 (send of output[0, 2) to rank 2): is marked `then` and is the first "
                      "step of its round");
  auto longer = good();
  longer[2].rounds = 7;
  check_fault(longer, "rank 2 has 7 rounds, and rank 0 has 6");
  CHECK(fault_of({}) == "there are 0 schedules for 4 ranks");
}

TEST_CASE("proof: who does not reduce may not") {
  plan_request request{.world_size = 2, .count = 8};
  std::vector<schedule> two(2);
  two[0] = {
    1,
    0,
    {send(0, 1, {buffer::input, 0, 8}),
     {.what = action::copy, .round = 0, .peer = 0, .source = {buffer::input, 0, 8}, .destination = output(0, 8)}}};
  two[1] = {1, 0, {recv(0, 0, output(0, 8))}};
  CHECK_FALSE(prove(proto::BROADCAST, request, two).fault);
  two[1].steps[0].finish = true;
  CHECK(render(prove(proto::BROADCAST, request, two).fault)
        == "rank 1, round 0, step 0 (recv of output[0, 8) from rank 0): finishes, and broadcast does not reduce");
}

TEST_CASE("proof: a barrier finishes after every rank has started") {
  // Dissemination over 4 ranks: in round k each tells the rank 2^k further on.
  std::vector<schedule> ranks(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    ranks[rank] = {2, 4, {}};
    for (uint32_t round = 0; round < 2; ++round) {
      ranks[rank].steps.push_back(send(round, (rank + (1u << round)) % 4, {buffer::scratch, 2 * round, 1}));
      ranks[rank].steps.push_back(recv(round, (rank + 4 - (1u << round)) % 4, {buffer::scratch, 2 * round + 1, 1}));
    }
  }
  plan_request request{.world_size = 4};
  for (uint64_t seed = 0; seed < 20; ++seed)
    CHECK_FALSE(prove(proto::BARRIER, request, ranks, seed).fault);
  for (auto& rank : ranks)
    for (auto& x : rank.steps)
      x.round = 0; // what a message says is what was known at its round's beginning
  for (uint64_t seed = 0; seed < 20; ++seed)
    CHECK(render(prove(proto::BARRIER, request, ranks, seed).fault)
          == "rank 0, after its last round: it may end before rank 1 has begun; it knows of ranks 0, 2 to 3");
}

TEST_CASE("proof: every algorithm that there is holds, and costs what it says") {
  for (const auto& algorithm : algorithms())
    for (uint32_t world_size : {1, 2, 3, 4, 5, 7, 8, 12, 17, 32})
      for (uint64_t count : {0u, 1u, world_size - 1, world_size + 1, 1000u}) {
        plan_request request{.world_size = world_size, .count = count, .root = world_size / 2};
        if (check_request(algorithm.kind, request)) // a transfer needs two ranks
          continue;
        std::vector<schedule> ranks;
        for (request.rank = 0; request.rank < world_size; ++request.rank)
          ranks.push_back(*plan(algorithm.kind, algorithm.name, request));
        request.rank = 0;
        auto found = prove(algorithm.kind, request, ranks, world_size * 7919 + count);
        CAPTURE(algorithm.name);
        CAPTURE(name_of(algorithm.kind));
        CAPTURE(world_size);
        CAPTURE(count);
        CHECK_MESSAGE(!found.fault, render(found.fault));
        auto cost = *cost_of(algorithm.kind, algorithm.name, request);
        CHECK(found.rounds == cost.rounds);
        CHECK(*std::max_element(found.elements_sent.begin(), found.elements_sent.end()) == cost.elements);
      }
}

TEST_CASE("proof: what it lets pass is right on numbers, whatever was changed") {
  std::mt19937_64 random{20240229};
  uint32_t passed = 0, refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    auto ranks = good(trial % 2 == 0 ? "ring" : "naive");
    auto& rank = ranks[random() % 4];
    auto& x = rank.steps[random() % rank.steps.size()];
    auto& other = rank.steps[random() % rank.steps.size()];
    switch (random() % 7) {
      case 0: x.source.offset = random() % 8; break;
      case 1: x.destination.offset = random() % 8; break;
      case 2: x.source.where = static_cast<buffer>(random() % 3); break;
      case 3: x.finish = !x.finish; break;
      case 4: x.what = static_cast<action>(random() % 5); break;
      case 5: std::swap(x.peer, other.peer); break;
      default: std::swap(x.source, other.source); break;
    }
    if (!fault_of(ranks).empty()) {
      ++refused;
      continue;
    }
    ++passed;
    std::vector<test::rank_memory<int64_t>> memory(4);
    std::vector<int64_t> sum(8);
    for (auto& each : memory)
      for (uint64_t i = 0; i < 8; ++i)
        sum[i] += each.input.emplace_back(static_cast<int64_t>(random() % 1'000'000'007));
    auto walked = test::interpret_on(memory, ranks, 8, random(), std::plus<int64_t>{}, [](int64_t v) { return -v; });
    REQUIRE_MESSAGE(!walked.fault, render(walked.fault));
    for (auto& each : memory)
      for (uint64_t i = 0; i < 8; ++i)
        REQUIRE(each.output[i] == -sum[i]); // finished once
  }
  CHECK(passed > 100);
  CHECK(refused > 1000);
}

TEST_CASE("algorithms: one that cannot be registered is refused with a sentence") {
  constexpr algorithm mine{"mine", proto::ALL_REDUCE, "as naive",
                           [](const plan_request& x) { return *plan(proto::ALL_REDUCE, "naive", x); },
                           [](const plan_request& x) { return *cost_of(proto::ALL_REDUCE, "naive", x); }};
  auto before = algorithms().size();
  auto refused = [](const algorithm& x) { return render(register_algorithm(x)); };
  CHECK(refused({"ring", proto::ALL_REDUCE, "", mine.plan, mine.cost})
        == "the algorithm \"ring\" for all_reduce cannot be registered: there is one of that name");
  CHECK(refused({"", proto::ALL_REDUCE, "", mine.plan, mine.cost})
        == "the algorithm \"\" for all_reduce cannot be registered: it has no name");
  CHECK(refused({"mine", proto::ALL_REDUCE, "", mine.plan, nullptr})
        == "the algorithm \"mine\" for all_reduce cannot be registered: it needs a function for its plan and one for "
           "its cost");
  CHECK(algorithms().size() == before);
}
