// Plans in rank order are made from what is kept of the latest requests. No request may get another one's.
#include "runtime/rank_order/rank_order.hpp"

#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

struct asked {
  proto::CollectiveKind kind;
  std::string_view algorithm;
  plan_request request;
};

/// Every rank's plan, of what is kept, is the one that keeps nothing.
void check_plans(const asked& x) {
  auto fresh = plan_all_in_rank_order(x.kind, x.algorithm, x.request);
  REQUIRE_MESSAGE(fresh.engaged(), (fresh ? "" : render(fresh.error())));
  auto request = x.request;
  for (request.rank = 0; request.rank < request.world_size; ++request.rank) {
    auto planned = plan_in_rank_order(x.kind, x.algorithm, request);
    CAPTURE(request.rank);
    REQUIRE_MESSAGE(planned.engaged(), (planned ? "" : render(planned.error())));
    REQUIRE(*planned == (*fresh)[request.rank]);
  }
}

} // namespace

TEST_CASE("rank order: requests that differ in one thing only get different plans, one right after the other") {
  using namespace proto;
  struct row {
    std::string differ_in;
    asked one, other;
  };
  const plan_request uneven{.world_size = 5, .counts = {4, 1, 7, 2, 3}},
    permuted{.world_size = 5, .counts = {1, 7, 2, 3, 4}};
  for (const auto& x : {
         row{"counts", {REDUCE_SCATTER, "ring", uneven}, {REDUCE_SCATTER, "ring", permuted}},
         row{"counts, by halves", {REDUCE_SCATTER, "halving", uneven}, {REDUCE_SCATTER, "halving", permuted}},
         row{"world size",
             {ALL_REDUCE, "ring", {.world_size = 5, .count = 41}},
             {ALL_REDUCE, "ring", {.world_size = 6, .count = 41}}},
         row{"count",
             {ALL_REDUCE, "ring", {.world_size = 5, .count = 42}},
             {ALL_REDUCE, "ring", {.world_size = 5, .count = 43}}},
         row{"root",
             {REDUCE, "tree", {.world_size = 5, .count = 44, .root = 1}},
             {REDUCE, "tree", {.world_size = 5, .count = 44, .root = 3}}},
         row{"chunk",
             {REDUCE, "chain", {.world_size = 5, .count = 45, .chunk = 4}},
             {REDUCE, "chain", {.world_size = 5, .count = 45, .chunk = 9}}},
         row{"kind",
             {ALL_REDUCE, "naive", {.world_size = 5, .count = 46}},
             {REDUCE, "naive", {.world_size = 5, .count = 46}}},
         row{"algorithm",
             {ALL_REDUCE, "ring", {.world_size = 5, .count = 47}},
             {ALL_REDUCE, "tree", {.world_size = 5, .count = 47}}},
       }) {
    CAPTURE(x.differ_in);
    check_plans(x.one);
    check_plans(x.other);
    check_plans(x.one);
  }
}

TEST_CASE("rank order: more requests than the cache holds, interleaved, get their own plans") {
  for (int turn = 0; turn < 2; ++turn)
    for (uint64_t count = 60; count < 72; ++count) {
      CAPTURE(count);
      check_plans({proto::ALL_REDUCE, "ring", {.world_size = 4, .count = count}});
    }
}
