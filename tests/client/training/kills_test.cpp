// Training on real threads, with and without devices that are killed at any time.
#include "tests/support/training/threaded_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("kills: thirty real kills change no loss") {
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

TEST_CASE("kills: a perceptron of 784-256-10 under zero3 on four ranks learns generated digits in an epoch") {
  auto settings = digits_by("zero3", 4);
  settings.data = *make_synthetic_digits(1234, 8000, 1200);
  settings.epochs = 1;
  settings.mirror = false;
  auto& job = settings.job;
  job.as = precision::float32;
  constexpr uint64_t sizes[] = {784, 256, 10};
  job.layers = perceptron(sizes, nonlinearity::relu);
  job.shape = {.layers = 2, .global_batch = 100, .micro_batch = 25};
  job.update = {.kind = optimizer_kind::adam, .rate = 0.001};
  threaded_cluster on{4};
  epoch_report epoch;
  run_watcher watcher;
  watcher.epoch_done = [&](const epoch_report& x) { epoch = x; };
  auto found = train(on.system(), on.coordinator(), std::move(settings), watcher);
  REQUIRE_MESSAGE(found.engaged(), (found ? "" : render(found.error())));
  CHECK(epoch.steps == 80);
  CHECK(epoch.held_out.samples == 1200);
  CHECK(epoch.held_out.right > 1200 * 85 / 100);
}
