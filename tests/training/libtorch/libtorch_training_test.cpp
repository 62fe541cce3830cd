// Strategies over libtorch's layers: the weights are one rank's, and those of the same model in libtorch alone.
#include "bench/training_real/plain_libtorch.hpp"
#include "tests/support/training/trained_model.hpp"
#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

constexpr byte_transformer small{.positions = 6, .width = 8, .heads = 4, .blocks = 3, .hidden = 12};

/// Bytes of no pattern, each position's label among them.
class scattered_bytes final : public batch_source {
public:
  caf::error fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const override {
    auto byte = [&](uint64_t sample, uint64_t place) { return ((step * 16 + sample) * 131 + place * 71) % 256; };
    for (auto i = samples.begin; i < samples.end; ++i)
      for (uint64_t j = 0; j < small.positions; ++j) {
        const auto at = (i - samples.begin) * small.positions + j;
        if (!inputs.empty())
          inputs[at] = static_cast<float>(byte(i, j));
        if (!labels.empty())
          labels[at] = static_cast<uint32_t>(byte(i, j + 1));
      }
    return caf::none;
  }
};

training_job job_of(const plain_model& x, precision as, uint64_t batch, optimizer_kind by = optimizer_kind::sgd) {
  training_job job;
  if (x.kind == plain_model::which::perceptron)
    job.layers = libtorch_perceptron(x.sizes);
  else if (x.kind == plain_model::which::bytes)
    job.layers = std::move(*layers_of(x.bytes));
  else
    job.layers = x.kind == plain_model::which::lenet ? lenet() : resnet9();
  job.shape.layers = static_cast<uint32_t>(job.layers.size());
  job.shape.global_batch = job.shape.micro_batch = batch;
  job.shape.uneven = job.shape.replicated = job.shape.for_real = true;
  job.strategy = strategy_of("ddp");
  job.as = as;
  // Adam divides by a gradient's size, and so rounding's part of a small one counts: in proportion to the rate.
  job.update = {.kind = by, .rate = by == optimizer_kind::sgd ? 0.01 : 0.001, .weight_decay = 0.01};
  job.seed = 5;
  if (x.kind == plain_model::which::bytes) {
    job.labels_each = static_cast<uint32_t>(small.positions);
    job.data = std::make_shared<scattered_bytes>();
  } else {
    job.data = std::make_shared<scattered_samples>(job.layers.front()->inputs(), 10, batch);
  }
  return job;
}

const plain_model perceptron_model{plain_model::which::perceptron, {12, 9, 8, 8, 7, 10}},
  lenet_model{plain_model::which::lenet}, resnet9_model{plain_model::which::resnet9},
  bytes_model{.kind = plain_model::which::bytes, .bytes = small};

bool all_share(const training_job& job, uint32_t ranks) {
  return std::ranges::all_of(job.layers, [&](auto& each) { return !each->cannot_share(ranks); });
}

/// No gradient changes an attention's bias of keys, nor a convolution's bias before a batch norm: there rounding errors
/// are all there is, of each of which Adam would make a whole step.
std::vector<optimizer_kind> optimizers_for(const plain_model& x) {
  if (x.kind == plain_model::which::resnet9 || x.kind == plain_model::which::bytes)
    return {optimizer_kind::sgd};
  return {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw};
}

/// All strategies that can, in micro-batches of one sample and of three. The number of runs.
size_t check_strategies(const plain_model& what, precision as, std::initializer_list<uint32_t> worlds,
                        double tolerance) {
  constexpr uint64_t batch = 8;
  const auto by = optimizers_for(what).back();
  size_t runs = 0;
  const auto alone = train(job_of(what, as, batch, by), 1);
  for (auto& which : strategies())
    for (auto ranks : worlds)
      for (uint64_t micro_batch : {1, 3}) {
        auto job = job_of(what, as, batch, by);
        job.strategy = &which;
        job.shape.micro_batch = micro_batch;
        auto layers = layers_for(which, std::move(job.layers));
        if (!layers)
          continue;
        job.layers = std::move(*layers);
        if (which.check(job.shape, ranks) || !all_share(job, which.shape(job.shape, ranks).tensor))
          continue;
        CAPTURE(which.name);
        CAPTURE(ranks);
        CAPTURE(micro_batch);
        const auto found = train(job, ranks);
        CHECK(distance(found, alone) < tolerance);
        CHECK(found.loss == doctest::Approx(alone.loss).epsilon(tolerance));
        ++runs;
      }
  return runs;
}

} // namespace

TEST_CASE("libtorch: five steps end with the weights of the same model in libtorch alone") {
  for (auto* model : {&perceptron_model, &lenet_model, &resnet9_model, &bytes_model})
    for (auto by : optimizers_for(*model)) {
      CAPTURE(static_cast<int>(model->kind));
      CAPTURE(name_of(by));
      auto job = job_of(*model, precision::float64, 6, by);
      const auto found = train(job, 1, 32 << 20);
      plain_libtorch plain{*model, job};
      double loss = 0;
      for (int i = 0; i < 5; ++i)
        loss = plain.run_step();
      CHECK(found.loss == doctest::Approx(loss).epsilon(1e-9));
      CHECK(distance(found, {plain.parameters(), loss}) < 1e-9);
    }
}

TEST_CASE("libtorch: every strategy's weights are one rank's, in float64 and in float32") {
  CHECK(check_strategies(bytes_model, precision::float64, {1, 4, 8}, 1e-12) > 40);
  CHECK(check_strategies(perceptron_model, precision::float64, {3, 4}, 1e-12) > 30);
  CHECK(check_strategies(bytes_model, precision::float32, {2, 8}, 1e-5) > 30);
  CHECK(check_strategies(lenet_model, precision::float32, {4}, 1e-5) > 10);
}

TEST_CASE("libtorch: ranks of a batch norm find its running mean together") {
  auto job = job_of(resnet9_model, precision::float64, 12);
  const auto statistic = static_cast<uint32_t>(job.layers[0]->parameters().size()) - 2;
  auto mean_by = [&](std::string_view strategy, uint32_t ranks, uint64_t micro_batch) {
    job.strategy = strategy_of(strategy);
    job.shape.micro_batch = micro_batch;
    computed_world world{job, ranks, 32 << 20};
    REQUIRE(world.run_step().engaged());
    return world.parameter_of(0, statistic);
  };
  const auto alone = mean_by("ddp", 1, 12);
  CHECK(std::ranges::any_of(alone, [](double x) { return std::abs(x) > 1e-3; }));
  struct run {
    std::string_view strategy;
    uint32_t ranks;
    uint64_t micro_batch;
  };
  for (auto& [strategy, ranks, micro_batch] :
       {run{"ddp", 3, 12}, {"zero1", 4, 12}, {"zero3", 2, 3}, {"1f1b", 4, 3}, {"zb-h1", 4, 3}}) {
    CAPTURE(strategy);
    const auto found = mean_by(strategy, ranks, micro_batch);
    for (size_t i = 0; i < found.size(); ++i)
      CHECK(found[i] == doctest::Approx(alone[i]).epsilon(1e-12));
  }
}

TEST_CASE("libtorch: what a layer refuses ends the step with a sentence") {
  auto job = job_of(resnet9_model, precision::float32, 4);
  job.shape.micro_batch = 1;
  job.strategy = strategy_of("1f1b");
  computed_world world{job, 2, 16 << 20};
  const auto ended = world.run_step();
  REQUIRE(!ended);
  const auto why = render(ended.error());
  CHECK_MESSAGE(why.find("conv 3x3 64x2x2 to 128x1x1: ") != std::string::npos, why);
}
