// Where ranks of a step meet.
#include "training/computed/exchange_desk.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// Of a gradient, of two ranks, with `elements` elements.
arrival collective(op what, uint32_t rank, uint64_t count, uint32_t root = 0) {
  value_tag gradient;
  gradient.kind = value_kind::weight_gradient;
  gradient.layer = 3;
  arrival result;
  result.about = shown(what, false, rank, root, {0, 2, 1}, gradient, form::whole);
  result.about.argument.samples.add(range_set{range{rank, rank + 1}});
  result.count = count;
  return result;
}

arrival passing(op what, uint32_t rank, uint32_t peer, uint64_t count) {
  value_tag activation;
  activation.kind = value_kind::activation;
  arrival result;
  result.about = shown(what, false, rank, peer, {}, activation, form::whole);
  result.count = count;
  return result;
}

} // namespace

TEST_CASE("exchange desk: a collective takes place when all have come, in the group's order") {
  exchange_desk desk;
  CHECK(!*desk.arrive(collective(op::all_reduce, 1, 8)));
  CHECK(desk.waiting().value_or("").starts_with("rank 1 waits for rank 0 to call all_reduce of the "));
  auto all = desk.arrive(collective(op::all_reduce, 0, 8));
  REQUIRE_MESSAGE(all, render(all.error()));
  REQUIRE(*all);
  REQUIRE((*all)->size() == 2);
  CHECK((**all)[0].about.rank == 0);
  CHECK((**all)[1].about.rank == 1);
  CHECK(!desk.waiting());
}

TEST_CASE("exchange desk: ranks that differ in what they call, or in how long it is, are refused") {
  exchange_desk kinds, lengths;
  REQUIRE(kinds.arrive(collective(op::all_reduce, 0, 8)));
  auto refused = kinds.arrive(collective(op::reduce_scatter, 1, 8));
  REQUIRE(!refused);
  CHECK(render(refused.error()).starts_with("the ranks' collectives do not match: rank 0 calls all_reduce of the "));

  REQUIRE(lengths.arrive(collective(op::all_reduce, 0, 8)));
  refused = lengths.arrive(collective(op::all_reduce, 1, 4));
  REQUIRE(!refused);
  CHECK(render(refused.error()).starts_with("the ranks' models do not match: "));
  CHECK(render(refused.error()).ends_with(" has 8 elements at rank 0, and 4 at rank 1"));
}

TEST_CASE("exchange desk: what is sent is received in its order, and what is left is named") {
  exchange_desk desk;
  CHECK(!*desk.arrive(passing(op::send, 0, 1, 8)));
  CHECK(!*desk.arrive(passing(op::send, 0, 1, 4)));
  CHECK(render(desk.left_behind()).starts_with("rank 1 has ended without receiving what rank 0 sent: "));
  for (uint64_t count : {8, 4}) {
    auto both = desk.arrive(passing(op::receive, 1, 0, 0));
    REQUIRE(both);
    REQUIRE(*both);
    CHECK((**both)[0].about.rank == 0);
    CHECK((**both)[1].count == count);
  }
  CHECK(!desk.left_behind());
  CHECK(!*desk.arrive(passing(op::receive, 1, 0, 0)));
  CHECK(desk.waiting().value_or("").starts_with("rank 1 waits for rank 0 to send it "));
}
