// The settings that processes compare before they train together, and what a run's trainer and journal get.
#include "client/training/model_checkpoint.hpp"

#include "client/training/active_run.hpp"
#include "tests/support/training/layer_like.hpp"
#include "tests/support/training/training_jobs.hpp"
#include "training/data/synthetic_digits.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace ringmaster;
using namespace ringmaster::training;
using namespace std::chrono_literals;

namespace {

/// The same layer, computed by something else.
class elsewhere_made final : public test::layer_like {
public:
  using layer_like::layer_like;
  std::string_view making() const override { return "elsewhere"; }
};

/// Three samples of two elements.
class few_samples final : public data_set {
public:
  float last_element = 5;
  uint32_t last_label = 2;

  std::string name() const override { return "few"; }
  uint32_t count() const override { return 3; }
  sample_shape shape() const override { return {.columns = 2}; }
  uint32_t label_count() const override { return 9; }

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override {
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = sample == 2 && i == 1 ? last_element : static_cast<float>(i);
    if (!labels.empty())
      labels[0] = sample == 2 ? last_label : 1;
  }
};

} // namespace

TEST_CASE("requested settings: data with another element or label differ") {
  const few_samples data;
  few_samples other;
  CHECK(data_text(other) == data_text(data));
  other.last_label = 3;
  CHECK(data_text(other) != data_text(data));
  other = {};
  other.last_element = 6;
  CHECK(data_text(other) != data_text(data));
}

TEST_CASE("requested settings: all of the data is compared") {
  const auto job = small_job("zero3", 4, 12, 3);
  const few_samples data;
  few_samples other;
  const auto told = requested_settings(job, data, false, false, &data);
  CHECK(requested_settings(job, other, false, false, &other) == told);
  other.last_element = 6;
  CHECK(requested_settings(job, other, false, false, &data) != told);
  CHECK(requested_settings(job, data, false, false, &other) != told);
  CHECK(requested_settings(job, data, false, false, nullptr) != told);
  // Generated data are compared by what they follow from.
  auto drawn = [&](uint64_t seed, uint32_t count) {
    const auto both = *make_synthetic_digits(seed, count, 10);
    return requested_settings(job, *both.training, false, false, both.held_out.get());
  };
  CHECK(drawn(1, 100) == drawn(1, 100));
  CHECK(drawn(1, 100) != drawn(2, 100));
  CHECK(drawn(1, 100) != drawn(1, 101));
}

TEST_CASE("requested settings: everything that changes a step's result is included") {
  const few_samples data;
  auto job = [] { return small_job("zero3", 4, 12, 3); };
  const auto told = requested_settings(job(), data, false, false);
  const std::vector<std::function<void(training_job&)>> changes{
    [](auto& x) { x.strategy = strategy_of("zero2"); },
    [](auto& x) { x.layers.pop_back(); },
    [](auto& x) {
      auto& last = x.layers.back();
      last = std::make_shared<elsewhere_made>(last);
    },
    [](auto& x) { x.as = precision::float32; },
    [](auto& x) { x.update.kind = optimizer_kind::adamw; },
    [](auto& x) { x.update.rate = 0.02; },
    [](auto& x) { x.update.weight_decay = 0.02; },
    [](auto& x) { x.update.beta1 = 0.8; },
    [](auto& x) { x.update.beta2 = 0.99; },
    [](auto& x) { x.update.epsilon = 1e-7; },
    [](auto& x) { x.seed = 6; },
    [](auto& x) { x.shape.global_batch = 13; },
    [](auto& x) { x.shape.micro_batch = 4; },
    [](auto& x) { x.all_at_once = true; },
    [](auto& x) { x.shape.parallel.tp = 2; },
    [](auto& x) { x.shape.parallel.dp = 2; },
    [](auto& x) { x.shape.parallel.shard_ranks = 2; },
    [](auto& x) { x.shape.parallel.chunks = 3; },
    [](auto& x) { x.shape.prefetch = 2; },
    [](auto& x) { x.shape.parallel.zero = 1; },
    [](auto& x) { x.shape.virtual_ranks = 4; },
    [](auto& x) { x.shape.parallel.sequence_parallel = true; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    auto other = job();
    changes[i](other);
    const auto found = requested_settings(other, data, false, false);
    REQUIRE(found.size() == told.size());
    CHECK(found != told);
  }
  CHECK(requested_settings(job(), data, true, false) != told);
  CHECK(requested_settings(job(), data, false, true) != told);
}

TEST_CASE("requested settings: a trainer has the settings of its run") {
  run_settings x;
  x.deterministic = x.mirror = true;
  x.memory_bytes = 12'345;
  x.patience = 7s;
  x.operation_limit = 9s;
  const auto found = trainer_settings_of(x);
  CHECK(found.deterministic);
  CHECK(found.mirror);
  CHECK(found.memory_bytes == 12'345);
  CHECK(found.patience == 7s);
  CHECK(found.operation_limit == 9s);
}

TEST_CASE("requested settings: the journal's record of a step counts an epoch's samples from its beginning") {
  const auto job = small_job("ddp", 2, 6, 6);
  auto first = record_of(job, 20, 3, 0), last = record_of(job, 20, 3, 5);
  CHECK(first.epoch() == 0);
  CHECK(first.first_sample() == 0);
  CHECK(last.step() == 5);
  CHECK(last.epoch() == 1);
  CHECK(last.first_sample() == 12);
  CHECK(last.samples() == 6);
  CHECK(last.data_samples() == 20);
  CHECK(last.seed() == 5);
}
