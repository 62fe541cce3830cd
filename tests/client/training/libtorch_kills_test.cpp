// Training with libtorch's layers on real threads, with devices that are killed at any time.
#include "tests/support/training/threaded_training.hpp"
#include "training/libtorch/libtorch_models.hpp"

#include <malloc.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

run_settings lenet_by(std::string_view strategy, uint32_t ranks) {
  auto result = digits_by(strategy, ranks);
  result.data = *make_synthetic_digits(7, 120, 24);
  auto& job = result.job;
  job.layers = lenet();
  job.shape.layers = static_cast<uint32_t>(job.layers.size());
  job.update = {.kind = optimizer_kind::sgd, .rate = 0.05};
  return result;
}

} // namespace

TEST_CASE("libtorch: real kills change no loss, and no weight") {
  const auto undisturbed = train_killed(lenet_by("ddp", 1), 0, 1);
  uint32_t kills = 0;
  uint64_t given_up = 0, seed = 1;
  for (const std::string strategy : {"ddp", "zero3", "1f1b"}) {
    CAPTURE(strategy);
    const auto found = train_killed(lenet_by(strategy, 2), 4, seed++);
    kills += found.kills;
    given_up += found.given_up;
    check_same(found, undisturbed);
  }
  CHECK(kills >= 5);
  CHECK(given_up > 0);
}

TEST_CASE("libtorch: a training takes no new memory epoch after epoch") {
  threaded_cluster on{2};
  auto settings = digits_by("ddp", 2);
  settings.data = *make_synthetic_digits(7, 1280, 24);
  settings.epochs = 35;
  auto& job = settings.job;
  constexpr uint64_t sizes[] = {784, 128, 10};
  job.layers = libtorch_perceptron(sizes);
  job.as = precision::float32;
  job.shape.layers = 2;
  job.shape.global_batch = 128;
  job.shape.micro_batch = 64;
  std::vector<uint64_t> taken;
  run_watcher watcher;
  watcher.epoch_done = [&](auto&) {
    const auto found = ::mallinfo2(); // of all threads
    taken.push_back(found.arena + found.hblkhd);
  };
  REQUIRE(train(on.system(), on.coordinator(), settings, watcher));
  REQUIRE(taken.size() == 35);
  CHECK(taken.back() < taken[4] + (6 << 20)); // an activation of 32 KiB in each step of each rank would be 20 MB
}
