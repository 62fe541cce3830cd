// Ranks in threads of their own, on a cluster of this process: a group's collectives beside plain loops.
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

} // namespace

TEST_CASE("tensor group: on 1 to 8 ranks all have the sums of a plain loop") {
  played_ranks cluster;
  for (uint32_t ranks = 1; ranks <= played_ranks::most; ++ranks)
    for (uint64_t count : {0, 1, 5, 17}) {
      CAPTURE(ranks);
      CAPTURE(count);
      cluster.succeed(ranks, [=](rank_communicator& self, client& host) {
        tensor_group over{self, host, played_ranks::limit};
        const auto mine = own_numbers(self.rank(), count), right = summed_numbers(ranks, count);
        return differs(over.all_reduce(mine), right);
      });
    }
}

TEST_CASE("tensor group: on 1 to 8 ranks each block comes to its rank, as by a plain loop") {
  played_ranks cluster;
  for (uint32_t ranks = 1; ranks <= played_ranks::most; ++ranks)
    for (uint64_t each : {0, 1, 3}) {
      CAPTURE(ranks);
      CAPTURE(each);
      cluster.succeed(ranks, [=](rank_communicator& self, client& host) {
        tensor_group over{self, host, played_ranks::limit};
        const auto mine = own_numbers(self.rank(), ranks * each), right = exchanged_numbers(ranks, self.rank(), each);
        return differs(over.all_to_all(mine), right);
      });
    }
}

TEST_CASE("tensor group: collectives send what a ring and pairs need, and the cluster counts as much as the ranks do") {
  played_ranks cluster;
  constexpr uint64_t count = 24; // of which each of 2, 3, 4, 6 and 8 ranks has a block
  struct row {
    const char* name;
    reducing run;
    uint64_t passes; ///< How often a block is sent on, of N-1.
  };
  for (
    auto& [name, run, passes] :
    {row{"all_reduce", [](tensor_group&over, std::span<const float> x) { return over.all_reduce(x); }, 2},
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

TEST_CASE("tensor group: a rank that dies in the middle is an error with a sentence on all, and none waits for ever") {
  constexpr uint32_t victim = 2;
  constexpr auto long_limit = 60s;
  const auto begin = std::chrono::steady_clock::now();
  played_ranks cluster;
  const auto world = cluster.init(4);
  proto::FaultRequest death;
  death.set_at_step(true);
  death.set_step(3); // of 6 rounds
  REQUIRE(!cluster.host().inject(id_of(world.devices(victim)), death));
  auto outcomes = cluster.play(world, [&](rank_communicator& self, client& host) -> caf::error {
    tensor_group over{self, host, long_limit};
    auto done = over.all_reduce(own_numbers(self.rank(), 8));
    return done ? caf::error{} : std::move(done.error());
  });
  for (uint32_t rank : {0, 1, 3}) {
    CAPTURE(render(outcomes[rank]));
    CHECK(code_of(outcomes[rank]) == errc::device_lost);
    CHECK(contains(render(outcomes[rank]),
                   "the group has lost a rank: rank 2 (device 0x3) crashed: killed on request"));
  }
  CHECK(static_cast<bool>(outcomes[victim])); // the error of its own call
  CHECK(std::chrono::steady_clock::now() - begin < long_limit);
}

TEST_CASE("tensor group: a rank that does not come is named to the others when the limit has passed") {
  played_ranks cluster;
  auto outcomes = cluster.play(cluster.init(3), [](rank_communicator& self, client& host) -> caf::error {
    tensor_group over{self, host, 50ms};
    if (self.rank() == 1)
      return caf::none;
    auto done = over.all_reduce(own_numbers(self.rank(), 6));
    return done ? caf::error{} : std::move(done.error());
  });
  for (uint32_t rank : {0, 2}) {
    CHECK(code_of(outcomes[rank]) == errc::timed_out);
    CHECK_MESSAGE(contains(render(outcomes[rank]), "rank 1 (device 0x2) has not called"), render(outcomes[rank]));
  }
}

TEST_CASE("tensor group: what does not go together is refused on every rank, and the next call is as good as ever") {
  played_ranks cluster;
  cluster.succeed(2, [](rank_communicator& self, client& host) -> caf::error {
    tensor_group over{self, host, played_ranks::limit};
    auto refused = over.all_reduce(own_numbers(self.rank(), 4 + 2 * self.rank()));
    if (refused || code_of(refused.error()) != errc::invalid_argument)
      return make_error(errc::corrupt, refused ? "no error" : render(refused.error()));
    auto uneven = over.all_to_all(own_numbers(0, 3));
    if (render(uneven.error()) != "all_to_all: 3 numbers are no 2 equal blocks, one for each rank")
      return make_error(errc::corrupt, render(uneven.error()));
    return differs(over.all_reduce(own_numbers(self.rank(), 5)), summed_numbers(2, 5));
  });
}
