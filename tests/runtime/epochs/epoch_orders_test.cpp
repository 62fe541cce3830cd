// Every order of losses, quiesced answers, spares, reports and aborts, for two and three ranks: all states that a
// communicator can come to, each once, with what must hold in each.
#include "tests/runtime/epochs/epoch_world.hpp"
#include "tests/support/all_orders.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::epoch_tests;

namespace {

/// The number of states that can be reached.
size_t explore(uint32_t ranks, proto::FailurePolicy policy, const budget& limits) {
  return test::walk_all_orders(epoch_world{ranks, policy, limits});
}

} // namespace

// Behind every event come the ghosts of all epochs before: a stale Quiesced that counted would open an epoch over
// streams that still write.
TEST_CASE("epoch change: every order of losses, reports and answers leaves the survivors a result") {
  for (uint32_t ranks : {2, 3}) {
    CAPTURE(ranks);
    CHECK(explore(ranks, proto::SHRINK, {.losses = ranks, .calls = 3 - ranks}) > 100);
    CHECK(explore(ranks, proto::SHRINK, {.losses = 1, .calls = 3 - ranks, .broken = 1, .overdue = 1}) > 100);
  }
}

TEST_CASE("epoch change: every order of a loss and the end of a communicator answers all that wait") {
  for (uint32_t ranks : {2, 3})
    for (auto policy : {proto::SHRINK, proto::ABORT, proto::REPLACE}) {
      CAPTURE(ranks);
      CAPTURE(policy);
      CHECK(explore(ranks, policy,
                    {.losses = 1, .calls = 3 - ranks, .aborts = 1, .destroys = 1, .spares = 1, .refusals = 1})
            > 100);
    }
}

// Among the spares are bare ones, which come without the inputs: they cancel what runs, and nothing that is decided.
TEST_CASE("epoch change: every order of losses and spares that are given, refused, bare, or dead") {
  for (uint32_t ranks : {2, 3}) {
    CAPTURE(ranks);
    CHECK(explore(ranks, proto::REPLACE, {.losses = 2, .calls = 3 - ranks, .spares = 2, .refusals = 1}) > 1000);
  }
}

TEST_CASE("epoch change: every order of losses and members that leave, who go when nothing is under way") {
  for (uint32_t ranks : {2, 3})
    for (auto policy : {proto::SHRINK, proto::ABORT, proto::REPLACE}) {
      CAPTURE(ranks);
      CAPTURE(policy);
      CHECK(explore(ranks, policy, {.losses = 1, .calls = 3 - ranks, .spares = 1, .refusals = 1, .leaves = 2}) > 100);
      CHECK(explore(ranks, policy, {.losses = 0, .calls = 1, .aborts = 1, .spares = 1, .leaves = 1}) > 50);
    }
}

TEST_CASE("epoch change: every order of losses and data of joint operations on its way") {
  for (uint32_t ranks : {2, 3})
    for (auto policy : {proto::SHRINK, proto::ABORT, proto::REPLACE}) {
      CAPTURE(ranks);
      CAPTURE(policy);
      CHECK(explore(ranks, policy,
                    {.losses = 2, .calls = 3 - ranks, .overdue = 1, .aborts = 1, .spares = 1, .joint = true})
            > 100);
    }
}
