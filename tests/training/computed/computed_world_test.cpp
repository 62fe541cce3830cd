// Every strategy's program, with real numbers: the weights are those of one rank alone.
#include "messages/errc.hpp"
#include "tests/support/training/sociable_layer.hpp"
#include "tests/support/training/trained_model.hpp"
#include "tests/support/training/training_jobs.hpp"
#include "training/computed/model_parts.hpp"
#include "training/computed/step_world.hpp"
#include "training/layers/softmax_loss.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// tensor-naive of one layer, on two ranks that make columns by two that have other samples, which between steps have a
/// half each of what they have alike.
strategy run_halved_columns(rank& self, const model& m) {
  const mesh shape{2, 2, 1};
  const shard mine{shape.tensor_index(self.index()), 2};
  const auto tensor = shape.tensor_group(self.index()), data = shape.data_group(self.index());
  auto [w, state] = co_await self.load_columns(0, mine);
  auto half = co_await self.slice(std::move(w), {shape.data_index(self.index()), 2});
  auto all = co_await self.all_gather(half, data);
  auto x = co_await self.input(samples_of(m, shape.data_index(self.index()), 2));
  auto y = co_await self.forward(x, all);
  auto by_output = co_await self.loss(co_await self.all_gather(y, tensor));
  by_output = co_await self.slice_columns(std::move(by_output), mine);
  auto [by_weight, by_input] = co_await self.backward(x, all, by_output);
  co_await self.update(all, state, co_await self.all_reduce(std::move(by_weight), data));
  co_await self.finish(std::move(all));
}

/// Samples with two labels each.
class twice_labelled final : public batch_source {
public:
  explicit twice_labelled(std::shared_ptr<const batch_source> of) : of_(std::move(of)) {}

  caf::error fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const override {
    std::vector<uint32_t> each(labels.size() / 2);
    auto problem = of_->fill(step, samples, inputs, each);
    for (size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<uint32_t>((each[i / 2] + i % 2) % 9);
    return problem;
  }

private:
  std::shared_ptr<const batch_source> of_;
};

/// The only layer's weights after `steps` steps, by the layer, the loss and the optimizer alone.
std::vector<double> stepped_by_hand(const training_job& job, uint64_t steps) {
  const auto& its = *job.layers.front();
  const auto batch = job.shape.global_batch, labels_each = uint64_t{job.labels_each};
  const auto count = its.elements({});
  std::vector<double> w(count), state(count * job.update.state_arrays()), gradient(count), x(batch * its.inputs()),
    y(batch * its.outputs()), by_output(y.size());
  auto bytes = [](std::vector<double>& of) { return std::as_writable_bytes(std::span{of}).data(); };
  set_first_weights(job, 0, {}, {}, bytes(w));
  for (uint64_t step = 0; step < steps; ++step) {
    std::vector<float> inputs(x.size());
    std::vector<uint32_t> labels(batch * labels_each);
    REQUIRE(!job.data->fill(step, {0, batch}, inputs, labels));
    std::ranges::copy(inputs, x.begin());
    const pass at{.as = precision::float64, .samples = batch, .global_batch = batch};
    its.forward(at, bytes(x), bytes(w), bytes(y));
    softmax_loss(precision::float64, job.classes(), bytes(y), labels, labels.size(), bytes(by_output));
    its.backward(at, bytes(x), bytes(w), bytes(by_output), bytes(gradient), nullptr);
    job.update.update(precision::float64, step + 1, count, {bytes(w), bytes(state)}, bytes(w), bytes(state),
                      bytes(gradient));
  }
  return w;
}

/// The same of a world of ranks.
std::vector<double> stepped(const training_job& job, uint32_t ranks, uint64_t steps) {
  computed_world world{job, ranks, 4 << 20};
  for (uint64_t step = 0; step < steps; ++step) {
    auto losses = world.run_step();
    REQUIRE_MESSAGE(losses.engaged(), (losses ? "" : render(losses.error())));
  }
  std::vector<double> result;
  for (uint32_t p = 0; p < job.layers.front()->parameters().size(); ++p)
    for (auto each : world.parameter_of(0, p))
      result.push_back(each);
  return result;
}

void check_close(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
}

} // namespace

TEST_CASE("steps are those of layer, loss and optimizer by hand, the first one with number 1") {
  for (auto by : {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw})
    for (uint32_t ranks : {1, 3}) {
      const auto job = small_job("ddp", 1, 4, 4, by);
      check_close(stepped(job, ranks, 3), stepped_by_hand(job, 3));
    }
}

TEST_CASE("a gradient is of the mean over all labels, also where a sample has several") {
  auto job = small_job("ddp", 1, 4, 4, optimizer_kind::sgd);
  job.layers = {linear(8, 18)};
  job.labels_each = 2;
  job.data = std::make_shared<twice_labelled>(job.data);
  check_close(stepped(job, 2, 2), stepped_by_hand(job, 2));
}

TEST_CASE("every strategy's weights are one rank's, also where batches do not divide") {
  size_t runs = 0;
  for (uint64_t batch : {16, 13}) {
    const auto of_all = train(small_job("ddp", 8, batch, batch), 1);
    const auto of_columns = train(small_job("tensor-naive", 8, batch, batch), 1);
    for (auto& which : strategies())
      for (uint64_t micro_batch : {1, 3})
        for (uint32_t ranks : {1, 2, 3, 4, 5, 6, 7, 8})
          for (uint32_t tensor : {0, 2}) {
            auto job = small_job(which.name, 8, batch, micro_batch);
            job.shape.parallel.tp = tensor;
            if (tensor != 0 && which.shares == sharing::none)
              continue;
            if (which.check(job.shape, ranks))
              continue;
            CAPTURE(which.name);
            CAPTURE(batch);
            CAPTURE(micro_batch);
            CAPTURE(ranks);
            CAPTURE(tensor);
            const auto found = train(job, ranks);
            const auto& alone = which.by_columns ? of_columns : of_all;
            CHECK(distance(found, alone) < 1e-12);
            CHECK(found.loss == doctest::Approx(alone.loss).epsilon(1e-12));
            ++runs;
          }
  }
  CHECK(runs > 250);
}

TEST_CASE("padded shards have room, however many ranks there are") {
  const auto alone = train(small_job("ddp", 2, 300, 300), 1);
  for (const std::string strategy : {"zero1", "zero2", "zero3"})
    for (uint32_t ranks : {64, 65, 150, 300}) {
      CAPTURE(strategy);
      CAPTURE(ranks);
      CHECK(distance(train(small_job(strategy, 2, 300, 300), ranks, 1 << 17), alone) < 1e-12);
    }
}

TEST_CASE("columns are gathered and scattered on any number of ranks, also where they do not divide") {
  for (auto by : {optimizer_kind::sgd, optimizer_kind::adam}) {
    const auto alone = train(small_job("tensor-naive", 4, 13, 13, by), 1);
    for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
      CAPTURE(ranks);
      CHECK(distance(train(small_job("tensor-naive", 4, 13, 5, by), ranks), alone) < 1e-12);
    }
  }
}

TEST_CASE("parts of what makes columns are cut and gathered as of any weight") {
  auto job = small_job("tensor-naive", 1, 13, 13);
  const auto alone = train(job, 1);
  auto halved = *job.strategy;
  halved.run = run_halved_columns;
  job.strategy = &halved;
  CHECK(distance(train(job, 4), alone) < 1e-12);
}

TEST_CASE("a column shard of a sum is what a worked example has") {
  training_job job;
  job.as = precision::float64;
  job.layers.push_back(linear(8, 8));
  // The gradient by the input, [3 x 8] on each of four ranks: the numbers from 0 to 95.
  const value_tag whole{.kind = value_kind::activation_gradient, .samples = range_set{{0, 3}}};
  const column_shards cut{job, whole, 4};
  auto sum_on = [&](uint32_t rank) {
    std::vector<double> sum(6), mine(6), summand(24);
    REQUIRE(cut.bytes_each() == mine.size() * sizeof(double));
    for (int from = 0; from < 4; ++from) {
      std::iota(summand.begin(), summand.end(), 24. * from);
      cut.take(rank, reinterpret_cast<const std::byte*>(summand.data()), reinterpret_cast<std::byte*>(mine.data()));
      std::ranges::transform(sum, mine, sum.begin(), std::plus{});
    }
    return sum;
  };
  CHECK(sum_on(0) == std::vector<double>{144, 148, 176, 180, 208, 212});
  CHECK(sum_on(3) == std::vector<double>{168, 172, 200, 204, 232, 236});
}

TEST_CASE("layers that cannot be cut by the columns of their output are named") {
  auto job = small_job("tensor", 4, 8, 8);
  auto refused = layers_for(*strategy_of("tensor-naive"), job.layers);
  REQUIRE(!refused);
  CHECK(render(refused.error())
        == "tensor-naive cuts layers by the columns of their outputs, and layer 0, feed-forward 8x10 tanh, "
           "cannot be cut like that: linear layers can");
  auto error_of = [](training_job x, std::string_view strategy) {
    x.strategy = strategy_of(strategy);
    auto result = computed_world{x, 2, 4 << 20}.run_step();
    REQUIRE(!result);
    return render(result.error());
  };
  CHECK(error_of(job, "tensor-naive")
        == "rank 0, load_weights: feed-forward 8x10 tanh is not cut by the columns of its output");
  CHECK(error_of(small_job("tensor-naive", 4, 8, 8), "tensor")
        == "rank 0, load_weights: tanh linear 8x8 is cut by the columns of its output");
}

TEST_CASE("in a fixed order the bits are the same on any number of ranks") {
  auto with = [](uint32_t ranks) {
    auto job = small_job("ddp-ordered", 4, 13, 1);
    job.shape.virtual_ranks = 6;
    return train(job, ranks);
  };
  const auto alone = with(1);
  for (uint32_t ranks = 2; ranks <= 6; ++ranks)
    CHECK(with(ranks).parameters == alone.parameters);
  auto job = small_job("ddp-ordered", 4, 13, 1);
  job.shape.virtual_ranks = 6;
  auto refused = computed_world{job, 7, 4 << 20}.run_step();
  REQUIRE(!refused);
  CHECK(render(refused.error()) == "6 virtual ranks are too few for 7 ranks");
}

TEST_CASE("of the remaining ranks as many train as the strategy allows, as configured where possible") {
  auto found = [](std::string_view strategy, step_setting told, uint32_t there, uint64_t batch = 16) {
    auto job = small_job(strategy, 8, batch, 1);
    job.shape = with_setting(job.shape, told);
    const auto x = step_world_of(job, there);
    return fmt::format("{}: {}", x.ranks, text_of(x.sides));
  };
  CHECK(found("ddp", {}, 3) == "3: ");
  CHECK(found("ddp", {}, 3, 2) == "2: ");
  CHECK(found("tensor", {{.tp = 2, .dp = 2}}, 4) == "4: 2 tensor-parallel x 2 data-parallel");
  CHECK(found("tensor", {{.tp = 2, .dp = 2}}, 3) == "2: 2 tensor-parallel x 1 data-parallel");
  CHECK(found("tensor", {{.tp = 2, .dp = 4}}, 7) == "6: 2 tensor-parallel x 3 data-parallel");
  CHECK(found("tensor", {{.tp = 2, .dp = 2}}, 1) == "1: 1 tensor-parallel x 1 data-parallel");
  CHECK(found("tensor", {{.tp = 4, .dp = 0}}, 3) == "3: 3 tensor-parallel");
  CHECK(found("tensor", {{.tp = 0, .dp = 2}}, 1) == "1: 1 data-parallel");
  CHECK(found("tensor", {}, 11) == "8: "); // each layer has 8 rows to share
  CHECK(found("1f1b", {{.tp = 1, .dp = 2}}, 5) == "4: 1 tensor-parallel x 2 data-parallel"); // two stages
  CHECK(found("1f1b", {{.tp = 2, .dp = 2}}, 3) == "2: 2 tensor-parallel x 1 data-parallel");
  CHECK(found("hsdp", {{.shard_ranks = 4}}, 3) == "3: 3 that share the model");
  CHECK(found("ddp", {}, 0) == "0: ");
}

TEST_CASE("where ranks had no room for a step, fewer that lie alike are not tried either, and others are") {
  const auto job = small_job("ddp", 8, 16, 1);
  const std::vector<step_world> too_small{{3, {}}};
  CHECK(step_world_of(job, 4, too_small).ranks == 4);
  CHECK(step_world_of(job, 3, too_small).ranks == 0);
  CHECK(step_world_of(job, 2, too_small).ranks == 0);
  auto pairs = small_job("tensor", 8, 16, 1);
  pairs.shape = with_setting(pairs.shape, {{.tp = 2, .dp = 2}});
  const std::vector<step_world> as_requested{{4, {{.tp = 2, .dp = 2}}}};
  CHECK(step_world_of(pairs, 4, as_requested) == step_world{2, {{.tp = 2, .dp = 1}}});
}

TEST_CASE("of the remaining ranks only as many train that each layer has the samples it needs") {
  auto ranks = [](std::string_view strategy, uint64_t micro_batch, uint32_t there) {
    auto job = small_job(strategy, 4, 16, micro_batch);
    job.layers[2] = std::make_shared<test::sociable_layer>(job.layers[2]);
    return step_world_of(job, there).ranks;
  };
  CHECK(ranks("ddp-accumulate", 2, 4) == 4);
  CHECK(ranks("ddp-accumulate", 2, 3) == 2); // of three one has 2, 2 and 1
  CHECK(ranks("ddp-accumulate", 3, 3) == 3);
  CHECK(ranks("ddp", 16, 16) == 8);
  CHECK(ranks("ddp-accumulate", 1, 4) == 0);
}

TEST_CASE("a rank works on all of its samples at once, with any number of ranks, unless configured") {
  auto job = small_job("ddp", 4, 50, 17);
  CHECK(step_shape(job, {2, {}}).micro_batch == 17);
  job.all_at_once = true;
  CHECK(step_shape(job, {3, {}}).micro_batch == 17);
  CHECK(step_shape(job, {2, {}}).micro_batch == 25);
  CHECK(step_shape(job, {1, {}}).micro_batch == 50);
  job = small_job("tensor", 4, 50, 1);
  job.all_at_once = true;
  CHECK(step_shape(job, {4, {2, 2}}).micro_batch == 25); // two have the same samples
  job.shape = with_setting(job.shape, {{.tp = 2, .dp = 2}});
  CHECK(step_world_of(job, 3).ranks == 2);
}

TEST_CASE("a pipeline has four micro-batches a stage, with any number of stages, unless configured") {
  auto job = small_job("1f1b", 4, 48, 5);
  CHECK(step_shape(job, {3, {}}).micro_batch == 5);
  job.all_at_once = true;
  CHECK(step_shape(job, {4, {}}).micro_batch == 3);
  CHECK(step_shape(job, {3, {}}).micro_batch == 4);
  CHECK(step_shape(job, {2, {}}).micro_batch == 6);
  CHECK(step_shape(job, {1, {}}).micro_batch == 12);
  CHECK(step_shape(job, {4, {2, 2}}).micro_batch == 6); // of 24 samples, in one stage
  // Three ranks take micro-batches in threes: 6 of 7 samples, in place of 14 of 3. One trains by 1f1b.
  job = small_job("interleaved", 6, 40, 1);
  job.all_at_once = true;
  CHECK(step_shape(job, {3, {}}).micro_batch == 7);
  CHECK(step_world_of(job, 3) == step_world{3, {}});
  CHECK(step_world_of(job, 1) == step_world{1, {.stands_in = true}});
  CHECK(step_shape(job, {1, {.stands_in = true}}).micro_batch == 10);
}
