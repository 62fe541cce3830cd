#include "runtime/selection/written_algorithm.hpp"

#include "messages/errc.hpp"
#include "runtime/proof/proof.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

schedule_set written(const algorithm& from, plan_request request) {
  schedule_set result{from.kind, request, {}};
  for (request.rank = 0; request.rank < request.world_size; ++request.rank)
    result.ranks.push_back(from.plan(request));
  return result;
}

schedule_set ring_of_three() {
  return written(**find_algorithm(proto::ALL_REDUCE, "ring"), {.world_size = 3, .count = 6});
}

} // namespace

TEST_CASE("written algorithm: every schedule is right for multiples of its elements, also with unequal blocks") {
  for (const auto& from : algorithms()) {
    CAPTURE(from.name);
    auto one = written(from, {.world_size = 5, .count = 7, .root = 2, .peer = 3});
    auto three = scaled(one, 3);
    REQUIRE(three);
    CHECK(three->request.count == 21);
    CHECK_FALSE(prove(three->kind, three->request, three->ranks).fault);
    if (!has_v_variant(from.kind))
      continue;
    plan_request uneven{.world_size = 4, .root = 1};
    for (uint64_t i = 0; i < (from.kind == proto::ALL_TO_ALL ? 16 : 4); ++i)
      uneven.counts.push_back(i % 3);
    if (from.check != nullptr && from.check(uneven))
      continue;
    auto ten = scaled(written(from, uneven), 10);
    REQUIRE(ten);
    CHECK_FALSE(prove(ten->kind, ten->request, ten->ranks).fault);
  }
}

TEST_CASE("written algorithm: other requests than multiples are refused with the reason") {
  auto ring = ring_of_three();
  CHECK(*multiple_of(ring, {.world_size = 3, .count = 6}) == 1);
  CHECK(*multiple_of(ring, {.world_size = 3, .count = 600}) == 100);
  auto refusal = [](const schedule_set& of, const plan_request& request) {
    auto known = multiple_of(of, request);
    REQUIRE(!known);
    CHECK(code_of(known.error()) == errc::invalid_argument);
    return render(known.error());
  };
  CHECK(refusal(ring, {.world_size = 4, .count = 6}) == "the schedules are for a world size of 3, not 4");
  CHECK(refusal(ring, {.world_size = 3, .count = 8})
        == "the schedules are for a count of 6 or a multiple of it, not 8");
  CHECK(refusal(ring, {.world_size = 3, .count = 0})
        == "the schedules are for a count of 6 or a multiple of it, not 0");
  CHECK(refusal(ring, {.world_size = 3, .counts = {6, 6, 6}}) == "the schedules are for other counts");
  auto tree = written(**find_algorithm(proto::BROADCAST, "tree"), {.world_size = 3, .count = 6, .root = 1});
  CHECK(refusal(tree, {.world_size = 3, .count = 6, .root = 2}) == "the schedules are for root 1, not 2");
  auto pair = written(**find_algorithm(proto::SEND_RECV, "direct"), {.world_size = 3, .count = 6, .root = 1});
  CHECK(refusal(pair, {.world_size = 3, .count = 6, .root = 1, .peer = 2}) == "the schedules are for peer 0, not 2");
  ring.ranks[1].scratch_count = uint64_t{1} << 53;
  CHECK(refusal(ring, {.world_size = 3, .count = 6000}).starts_with("1000 times 9007199254740992 elements of scratch"));
  CHECK(!scaled(ring_of_three(), uint64_t{1} << 62));
}

TEST_CASE("written algorithm: its cost is that of the algorithm that generated it") {
  for (const auto& from : algorithms()) {
    CAPTURE(from.name);
    CAPTURE(name_of(from.kind));
    plan_request request{.world_size = 4, .count = 12, .root = 1, .peer = 2};
    auto cost = cost_of(written(from, request));
    REQUIRE(cost);
    CHECK(*cost == from.cost(request));
  }
}
