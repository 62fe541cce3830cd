// libtorch's layers by themselves: gradients beside differences, halves beside the whole, shards beside the whole.
#include "messages/errc.hpp"
#include "tests/support/training/layer_checks.hpp"
#include "training/libtorch/libtorch_models.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <thread>

using namespace ringmaster::training;

namespace {

constexpr byte_transformer small_transformer{.positions = 5, .width = 8, .heads = 4, .blocks = 1, .hidden = 12};

model_layers transformer_layers() {
  auto made = layers_of(small_transformer);
  REQUIRE(made.engaged());
  return std::move(*made);
}

/// Those of modules, one of a kind; autograd has their gradients.
model_layers module_layers() {
  model_layers all;
  auto add = [&](model_layers more, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      all.push_back(std::move(more[i]));
  };
  add(lenet(pooling::native), 0, 2);
  add(lenet(pooling::in_blocks), 0, 2);
  add(resnet9(), 0, 4);
  add(transformer_layers(), 1, 4);
  return all;
}

model_layers all_layers() {
  auto all = module_layers();
  all.push_back(libtorch_linear(5, 4));
  all.push_back(libtorch_linear(7, 5, nonlinearity::relu));
  all.push_back(libtorch_linear(7, 5, nonlinearity::tanh));
  return all;
}

elements_list some_bytes(uint64_t count) {
  elements_list result;
  for (uint64_t i = 0; i < count; ++i)
    result.push_back(static_cast<double>(i * i * 37 % 256));
  return result;
}

uint64_t learning(const model_layers& of) {
  uint64_t sum = 0;
  for (auto& each : of)
    sum += learning_elements(*each);
  return sum;
}

/// What a layer makes of a trial of three samples: outputs, and both gradients.
std::vector<float> backward_in_float32(const layer& of, const layer_trial& trial) {
  const std::vector<float> x(trial.x.begin(), trial.x.end()), w(trial.w.begin(), trial.w.end()),
    g(trial.g.begin(), trial.g.end());
  std::vector<float> all(g.size() + w.size() + x.size());
  auto raw = [](auto* first) { return reinterpret_cast<const std::byte*>(first); };
  auto* to = reinterpret_cast<std::byte*>(all.data());
  const pass at{precision::float32, 3, {}, 3};
  of.forward(at, raw(x.data()), raw(w.data()), to);
  of.backward(at, raw(x.data()), raw(w.data()), raw(g.data()), to + g.size() * sizeof(float),
              to + (g.size() + w.size()) * sizeof(float));
  return all;
}

/// Backward behind a forward that left something.
gradients kept_backward(const layer& of, const layer_trial& trial, pass at) {
  gradients result{elements_list(trial.w.size()), elements_list(trial.x.size())};
  of.backward(at, bytes(trial.x), bytes(trial.w), bytes(trial.g), bytes(result.by_weight), bytes(result.by_input));
  return result;
}

} // namespace

TEST_CASE("libtorch: models have as many parameters as their papers' or originals'") {
  CHECK(learning(lenet()) == 61'706);
  CHECK(learning(resnet9()) == 431'946);
  CHECK(learning(libtorch_perceptron(std::vector<uint64_t>{784, 128, 10})) == 101'770);
  CHECK(transformer_layers().size() == 4);
  CHECK(transformer_layers().back()->outputs() == 5 * 256);
  CHECK(layers_of({.width = 10, .heads = 4}).error());
  CHECK(layers_of({.positions = 0}).error());
}

TEST_CASE("libtorch: each model's layers fit each other") {
  for (auto& of : {lenet(), resnet9(), transformer_layers()})
    for (size_t i = 1; i < of.size(); ++i)
      CHECK_MESSAGE(of[i]->inputs() == of[i - 1]->outputs(), of[i]->name());
}

TEST_CASE("libtorch: a linear layer is the plain one") {
  for (auto f : {nonlinearity::none, nonlinearity::relu, nonlinearity::tanh}) {
    auto ours = libtorch_linear(7, 5, f), plain = linear(7, 5, f);
    CHECK(ours->name() == plain->name());
    REQUIRE(ours->parameters().size() == plain->parameters().size());
    for (size_t i = 0; i < 2; ++i) {
      CHECK(ours->parameters()[i].bound == plain->parameters()[i].bound);
      CHECK(ours->parameters()[i].tensor == plain->parameters()[i].tensor);
    }
    for (shard tensor : {shard{}, shard{0, 3}, shard{2, 3}}) {
      const layer_trial trial{*plain, 4};
      const auto w = part_of_weights(*plain, tensor, trial.w);
      const auto a = backward(*ours, 4, tensor, trial.x, w, trial.g),
                 b = backward(*plain, 4, tensor, trial.x, w, trial.g);
      const auto ya = forward(*ours, 4, tensor, trial.x, w), yb = forward(*plain, 4, tensor, trial.x, w);
      for (size_t i = 0; i < ya.size(); ++i)
        CHECK(ya[i] == doctest::Approx(yb[i]).epsilon(1e-14));
      for (size_t i = 0; i < a.by_weight.size(); ++i)
        CHECK(a.by_weight[i] == doctest::Approx(b.by_weight[i]).epsilon(1e-14));
      for (size_t i = 0; i < a.by_input.size(); ++i)
        CHECK(a.by_input[i] == doctest::Approx(b.by_input[i]).epsilon(1e-14));
    }
  }
}

TEST_CASE("libtorch: gradients are what small differences say") {
  for (auto& of : all_layers())
    check_gradients(*of, 3);
  check_gradients(*transformer_layers()[0], 3, some_bytes(15));
}

TEST_CASE("libtorch: a weight or an input that is no number gives outputs that are none") {
  for (auto& of : all_layers())
    for (bool in_weights : {true, false}) {
      CAPTURE(of->name());
      CAPTURE(in_weights);
      const layer_trial trial{*of, 2};
      std::vector<float> x(trial.x.begin(), trial.x.end()), w(trial.w.begin(), trial.w.end());
      (in_weights ? w : x)[0] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> y(2 * of->outputs());
      auto raw = [](auto& list) { return reinterpret_cast<std::byte*>(list.data()); };
      of->forward({precision::float32, 2, {}, 2}, raw(x), raw(w), raw(y));
      CHECK(!std::ranges::all_of(y, [](float each) { return std::isfinite(each); }));
    }
}

TEST_CASE("libtorch: lenet's layers give the same with either pooling") {
  for (size_t l : {0, 1}) {
    const auto native = std::move(lenet(pooling::native)[l]), in_blocks = std::move(lenet(pooling::in_blocks)[l]);
    const layer_trial trial{*native, 3};
    const auto a = backward_in_float32(*native, trial), b = backward_in_float32(*in_blocks, trial);
    REQUIRE(a.size() == b.size());
    CHECK(std::ranges::any_of(a, [](float x) { return x != 0; }));
    for (size_t i = 0; i < a.size(); ++i)
      CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
  }
}

TEST_CASE("libtorch: either gradient can be had alone") {
  for (auto& of : all_layers())
    check_halves(*of, 3);
  check_halves(*transformer_layers()[0], 3, some_bytes(15));
}

TEST_CASE("libtorch: what tensor-parallel ranks make of a transformer's layers adds up to the whole layer's") {
  const auto all = transformer_layers();
  for (uint32_t ranks : {2, 4}) {
    check_shards(*all[0], 3, ranks, some_bytes(15));
    for (size_t i = 1; i < all.size(); ++i)
      check_shards(*all[i], 3, ranks);
    check_shards(*libtorch_linear(7, 5, nonlinearity::relu), 3, ranks);
    for (auto f : {nonlinearity::none, nonlinearity::relu, nonlinearity::tanh})
      check_columns(*libtorch_linear(7, 5, f), 3, ranks);
  }
  CHECK(ringmaster::render(all[1]->cannot_share(3)) == "3 ranks cannot share 4 heads alike");
  CHECK(!all[2]->cannot_share(3));
  CHECK(!lenet()[0]->cannot_share(1));
  CHECK(ringmaster::render(lenet()[0]->cannot_share(2)) == "it has no cut for 2 tensor-parallel ranks");
}

TEST_CASE("libtorch: what a forward has left serves its backward, and its halves, as long as weights are the same") {
  for (auto& of : module_layers()) {
    CAPTURE(of->name());
    layer_trial trial{*of, 3};
    const auto expected = backward(*of, 3, {}, trial.x, trial.w, trial.g);
    std::shared_ptr<void> keepsake;
    pass at{.as = precision::float64, .samples = 3, .global_batch = 3, .weights = 1, .keepsake = &keepsake};
    elements_list y(3 * of->outputs());
    of->forward(at, bytes(trial.x), bytes(trial.w), bytes(y));
    CHECK(y == forward(*of, 3, {}, trial.x, trial.w));
    REQUIRE(keepsake != nullptr);
    elements_list by_input(trial.x.size());
    of->backward(at, bytes(trial.x), bytes(trial.w), bytes(trial.g), nullptr, bytes(by_input));
    CHECK(by_input == expected.by_input);
    CHECK(keepsake != nullptr);
    const auto both = kept_backward(*of, trial, at);
    CHECK(both.by_input == expected.by_input);
    CHECK(both.by_weight == expected.by_weight);
    CHECK(keepsake == nullptr);

    of->forward(at, bytes(trial.x), bytes(trial.w), bytes(y));
    trial.w = scattered(trial.w.size(), 6);
    at.weights = 2;
    const auto others = kept_backward(*of, trial, at);
    CHECK(others.by_input == backward(*of, 3, {}, trial.x, trial.w, trial.g).by_input);
    CHECK(others.by_input != expected.by_input);
  }
}

TEST_CASE("libtorch: of batch norm a forward that trains gives the batch's statistics, one that does not takes them") {
  const auto all = resnet9();
  const auto& of = *all[1]; // 16x8x8 to 32x4x4
  layer_trial trial{of, 4};
  const auto count = of.parameters().size();
  const auto &mean = of.parameters()[count - 2], &variance = of.parameters()[count - 1];
  REQUIRE((mean.is_statistic && variance.is_statistic));
  CHECK(mean.momentum == 0.1);
  CHECK((mean.mean == 0 && variance.mean == 1));

  // A quarter of the global batch: a quarter of what its samples say.
  gradients found{elements_list(trial.w.size()), elements_list(trial.x.size())};
  of.backward({precision::float64, 4, {}, 16}, bytes(trial.x), bytes(trial.w), bytes(trial.g), bytes(found.by_weight),
              bytes(found.by_input));
  for (auto i = trial.w.size() - 2 * 32; i < trial.w.size(); ++i)
    trial.w[i] = 4 * found.by_weight[i];
  auto y = forward(of, 4, {}, trial.x, trial.w);
  elements_list as_requested(y.size());
  const pass tries{.as = precision::float64, .samples = 4, .trains = false};
  of.forward(tries, bytes(trial.x), bytes(trial.w), bytes(as_requested));
  // Statistics have the variance of a sample of 64, training has that of the 64: y / gain differs by as much.
  for (size_t i = 0; i < y.size(); ++i)
    CHECK(as_requested[i] == doctest::Approx(y[i]).epsilon(0.02));
  CHECK(as_requested != y);

  for (auto i = trial.w.size() - 2 * 32; i < trial.w.size(); ++i)
    trial.w[i] = 1;
  CHECK(forward(of, 4, {}, trial.x, trial.w) == y); // who trains does not look at them
}

TEST_CASE("libtorch: a layer serves several ranks' threads at once") {
  const auto all = resnet9();
  const auto& of = *all[2];
  const layer_trial trial{of, 4};
  const auto expected = backward(of, 4, {}, trial.x, trial.w, trial.g);
  const auto y = forward(of, 4, {}, trial.x, trial.w);
  std::vector<int> right(6);
  std::vector<std::thread> ranks;
  for (auto& count : right)
    ranks.emplace_back([&] {
      std::vector<std::shared_ptr<void>> keepsakes(3); // three micro-batches under way
      const pass at{.as = precision::float64, .samples = 4, .global_batch = 4, .weights = 1};
      auto its = [&](auto& keepsake) {
        auto mine = at;
        mine.keepsake = &keepsake;
        return mine;
      };
      elements_list out(y.size());
      for (auto& each : keepsakes) {
        of.forward(its(each), bytes(trial.x), bytes(trial.w), bytes(out));
        count += out == y ? 1 : 0;
      }
      for (auto& each : keepsakes)
        count += kept_backward(of, trial, its(each)).by_weight == expected.by_weight ? 1 : 0;
    });
  for (auto& each : ranks)
    each.join();
  for (auto count : right)
    CHECK(count == 6);
}

TEST_CASE("libtorch: what it refuses comes out with the layer's name") {
  const auto all = transformer_layers();
  const layer_trial trial{*all[0], 1, {0, 1, 256, 3, 4}};
  CHECK_THROWS_WITH(forward(*all[0], 1, {}, trial.x, trial.w), "bytes 5x8: index out of range in self");
}

TEST_CASE("libtorch: a norm with one number a channel learns of two samples at once at least") {
  const auto all = resnet9();
  for (size_t i = 0; i < all.size(); ++i)
    CHECK(all[i]->samples_min() == (i == 4 || i == 5 ? 2 : 1)); // of 128x1x1
  for (auto& each : lenet())
    CHECK(each->samples_min() == 1);
}
