// Ranks in threads of their own, on a cluster of this process: collectives out of sends beside the library's and plain
// loops.
#include "client/parallel/own_collectives.hpp"
#include "tests/client/parallel/played_ranks.hpp"
#include "tests/support/text_search.hpp"

#include <chrono>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::parallel;
using namespace std::chrono_literals;

namespace {

/// Whole numbers, whose sums are exact in any order.
float own_number(uint32_t rank, uint64_t index) {
  return static_cast<float>(100 * (rank + 1) + index * (rank + 3));
}

std::vector<float> own_numbers(uint32_t rank, uint64_t count) {
  std::vector<float> result(count);
  for (uint64_t i = 0; i < count; ++i)
    result[i] = own_number(rank, i);
  return result;
}

std::vector<float> summed_numbers(uint32_t ranks, uint64_t count) {
  std::vector<float> result(count);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (uint64_t i = 0; i < count; ++i)
      result[i] += own_number(rank, i);
  return result;
}

/// Of what all ranks have, block `rank` of each.
std::vector<float> exchanged_numbers(uint32_t ranks, uint32_t rank, uint64_t each) {
  std::vector<float> result;
  for (uint32_t from = 0; from < ranks; ++from)
    for (uint64_t i = 0; i < each; ++i)
      result.push_back(own_number(from, rank * each + i));
  return result;
}

using reducing = caf::expected<std::vector<float>> (*)(tensor_group&, std::span<const float>);

caf::expected<std::vector<float>> library_all_reduce(tensor_group& over, std::span<const float> x) {
  return over.all_reduce(x);
}

} // namespace

TEST_CASE("own collectives: on 1 to 8 ranks all have the same sums as the library and a plain loop") {
  played_ranks cluster;
  for (uint32_t ranks = 1; ranks <= played_ranks::most; ++ranks)
    for (uint64_t count : {0, 1, 5, 17}) {
      CAPTURE(ranks);
      CAPTURE(count);
      cluster.succeed(ranks, [=](rank_communicator& self, client& host) {
        tensor_group over{self, host, played_ranks::limit};
        const auto mine = own_numbers(self.rank(), count), right = summed_numbers(ranks, count);
        if (auto problem = differs(own_all_reduce(over, mine), right))
          return problem;
        return differs(over.all_reduce(mine), right);
      });
    }
}

TEST_CASE("own collectives: on 1 to 8 ranks each block comes to its rank, as by the library and a plain loop") {
  played_ranks cluster;
  for (uint32_t ranks = 1; ranks <= played_ranks::most; ++ranks)
    for (uint64_t each : {0, 1, 3}) {
      CAPTURE(ranks);
      CAPTURE(each);
      cluster.succeed(ranks, [=](rank_communicator& self, client& host) {
        tensor_group over{self, host, played_ranks::limit};
        const auto mine = own_numbers(self.rank(), ranks * each), right = exchanged_numbers(ranks, self.rank(), each);
        if (auto problem = differs(own_all_to_all(over, mine), right))
          return problem;
        return differs(over.all_to_all(mine), right);
      });
    }
}

TEST_CASE("own collectives: they send what a ring and pairs need, and the cluster counts as much as the ranks do") {
  played_ranks cluster;
  constexpr uint64_t count = 24; // of which each of 2, 3, 4, 6 and 8 ranks has a block
  struct row {
    const char* name;
    reducing run;
    uint64_t passes; ///< How often a block is sent on, of N-1.
  };
  for (
    auto& [name, run, passes] :
    {row{"own all_reduce", own_all_reduce, 2}, row{"all_reduce", library_all_reduce, 2},
     row{"own all_to_all", own_all_to_all, 1},
     row{"all_to_all", [](tensor_group&over, std::span<const float> x) { return over.all_to_all(x); }, 1},
     row{"reduce_scatter", [](tensor_group&over, std::span<const float> x) { return over.reduce_scatter(x); }, 1},
     row{"all_gather",
         [](tensor_group&over, std::span<const float> x) { return over.all_gather(x.first(x.size() / over.size())); },
         1}})
    for (uint32_t ranks : {1, 2, 3, 4, 6, 8}) {
      CAPTURE(name);
      CAPTURE(ranks);
      const auto right = passes * (ranks - 1) * (count / ranks) * sizeof(float);
      const auto counted = cluster.succeed(ranks, [=, call = run](rank_communicator& self, client& host) {
        tensor_group over{self, host, played_ranks::limit};
        auto done = call(over, own_numbers(self.rank(), count));
        if (!done)
          return std::move(done.error());
        return over.bytes_sent() == right
                 ? caf::error{}
                 : make_error(errc::corrupt, fmt::format("it has sent {}, not {}", over.bytes_sent(), right));
      });
      CHECK(counted == ranks * right);
    }
}

TEST_CASE(
  "own collectives: a rank that dies in the middle is an error with a sentence on all, and none waits for ever") {
  constexpr uint32_t victim = 2;
  constexpr auto long_limit = 60s;
  const auto begin = std::chrono::steady_clock::now();
  for (auto run : {reducing{own_all_reduce}, reducing{own_all_to_all}, reducing{library_all_reduce}}) {
    played_ranks cluster;
    const auto world = cluster.init(4);
    const auto device = id_of(world.devices(victim));
    const bool own = run != library_all_reduce;
    if (!own) {
      proto::FaultRequest death;
      death.set_at_step(true);
      death.set_step(3); // of 6 rounds
      REQUIRE(!cluster.host().inject(device, death));
    }
    auto outcomes = cluster.play(world, [&](rank_communicator& self, client& host) -> caf::error {
      tensor_group over{self, host, long_limit};
      const auto mine = own_numbers(self.rank(), 8);
      if (own && self.rank() == victim) { // it does the first of 3 or 6 rounds
        auto came = over.pass(3, std::span{mine}.first(2), 1, 2);
        return came ? host.inject(device, {}) : std::move(came.error());
      }
      auto done = run(over, mine);
      return done ? caf::error{} : std::move(done.error());
    });
    for (uint32_t rank : {0, 1, 3}) {
      CAPTURE(render(outcomes[rank]));
      CHECK(code_of(outcomes[rank]) == errc::device_lost);
      CHECK(contains(render(outcomes[rank]),
                     "the group has lost a rank: rank 2 (device 0x3) was lost: killed on request"));
    }
    CHECK(static_cast<bool>(outcomes[victim]) == !own); // its thread gets the error of its own call
  }
  CHECK(std::chrono::steady_clock::now() - begin < long_limit); // nor for a rank that has failed
}

TEST_CASE("own collectives: a rank that does not come is named to the others when the limit has passed") {
  played_ranks cluster;
  auto outcomes = cluster.play(cluster.init(3), [](rank_communicator& self, client& host) -> caf::error {
    tensor_group over{self, host, 50ms};
    if (self.rank() == 1)
      return caf::none;
    auto done = own_all_reduce(over, own_numbers(self.rank(), 6));
    return done ? caf::error{} : std::move(done.error());
  });
  for (uint32_t rank : {0, 2}) {
    CHECK(code_of(outcomes[rank]) == errc::timed_out);
    CHECK_MESSAGE(contains(render(outcomes[rank]), "rank 1 (device 0x2) has not called"), render(outcomes[rank]));
  }
}

TEST_CASE("own collectives: what does not go together is refused on every rank, and the next call is as good as ever") {
  played_ranks cluster;
  cluster.succeed(2, [](rank_communicator& self, client& host) -> caf::error {
    tensor_group over{self, host, played_ranks::limit};
    for (auto run : {reducing{own_all_reduce}, reducing{library_all_reduce}}) {
      auto refused = run(over, own_numbers(self.rank(), 4 + 2 * self.rank()));
      if (refused || code_of(refused.error()) != errc::invalid_argument)
        return make_error(errc::corrupt, refused ? "no error" : render(refused.error()));
    }
    auto uneven = own_all_to_all(over, own_numbers(0, 3));
    if (render(uneven.error()) != "all_to_all: 3 numbers are no 2 equal blocks, one for each rank")
      return make_error(errc::corrupt, render(uneven.error()));
    return differs(own_all_reduce(over, own_numbers(self.rank(), 5)), summed_numbers(2, 5));
  });
}
