// Training on real threads, with devices that are killed at any time.
#include "tests/support/training/threaded_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("thirty real kills change no loss") {
  const auto undisturbed = train_killed(digits_by("ddp", 1), 0, 1);
  uint32_t kills = 0;
  uint64_t given_up = 0, seed = 1;
  for (const std::string strategy :
       {"ddp", "ddp-overlap", "zero1", "zero3", "1f1b", "zb-v", "tensor", "ddp", "zero2", "gpipe"}) {
    CAPTURE(strategy);
    auto settings = digits_by(strategy, strategy == std::string_view{"zb-v"} ? 2 : 3);
    const auto found = train_killed(std::move(settings), 6, seed++);
    kills += found.kills;
    given_up += found.given_up;
    check_same(found, undisturbed);
  }
  CHECK(kills >= 30);
  CHECK(given_up > 0);
}
