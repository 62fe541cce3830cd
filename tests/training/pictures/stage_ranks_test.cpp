#include "training/pictures/train_picture.hpp"

#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace ringmaster;
using namespace ringmaster::training;

TEST_CASE("first_of_stages: keeps one rank of each stage, and their messages") {
  model trained;
  trained.layers = 8;
  trained.global_batch = 8;
  trained.micro_batch = 1;
  trained.parallel.tp = 2;
  trained.parallel.dp = 2;
  const auto* which = strategy_of("1f1b");
  REQUIRE(which != nullptr);
  const auto shape = which->shape(trained, 16);
  REQUIRE(shape.pipeline == 4);
  REQUIRE(shape.stage_size() == 4);
  auto all = simulate([&](rank& self) { return which->run(self, trained); }, trained, 16, lab_costs(), true);
  REQUIRE(all);
  const auto found = first_of_stages(*all, shape);
  REQUIRE(found.ranks.size() == 4);
  CHECK(found.peak_rank == all->peak_rank / 4);
  std::map<uint32_t, size_t> events, of_all;
  std::map<std::pair<uint32_t, uint32_t>, int> on_the_way;
  for (auto& x : found.events) {
    REQUIRE(x.rank < 4);
    ++events[x.rank];
    if (x.what == op::send)
      ++on_the_way[{x.rank, x.peer}];
    if (x.what == op::receive)
      --on_the_way[{x.peer, x.rank}];
  }
  for (auto& x : all->events)
    ++of_all[x.rank];
  for (uint32_t stage = 0; stage < 4; ++stage) {
    CHECK(events[stage] == of_all[4 * stage]);
    CHECK(found.ranks[stage].peak_memory == all->ranks[size_t{4} * stage].peak_memory);
  }
  CHECK(on_the_way.size() == 6); // to each neighbour and back
  for (auto& [between, left] : on_the_way)
    CHECK(left == 0);
}
