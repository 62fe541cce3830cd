#pragma once

#include "training/layers/layer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

using elements_list = std::vector<double>;

inline const std::byte* bytes(const elements_list& x) {
  return reinterpret_cast<const std::byte*>(x.data());
}

inline std::byte* bytes(elements_list& x) {
  return reinterpret_cast<std::byte*>(x.data());
}

/// Numbers without a pattern, the same in every run.
inline elements_list scattered(size_t count, double seed) {
  elements_list result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(std::sin(seed + 12.9898 * static_cast<double>(i)));
  return result;
}

inline double product(const elements_list& a, const elements_list& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

inline elements_list forward(const layer& of, uint64_t samples, shard tensor, const elements_list& x,
                             const elements_list& w) {
  elements_list y(samples * of.outputs());
  of.forward({precision::float64, samples, tensor, samples}, bytes(x), bytes(w), bytes(y));
  return y;
}

struct gradients {
  elements_list by_weight, by_input;
};

inline gradients backward(const layer& of, uint64_t samples, shard tensor, const elements_list& x,
                          const elements_list& w, const elements_list& by_output) {
  gradients result{elements_list(w.size()), elements_list(x.size())};
  of.backward({precision::float64, samples, tensor, samples}, bytes(x), bytes(w), bytes(by_output),
              bytes(result.by_weight), bytes(result.by_input));
  return result;
}

/// A tensor-parallel rank's part of a layer's whole weights.
inline elements_list part_of_weights(const layer& of, shard tensor, const elements_list& whole) {
  elements_list result;
  uint64_t before = 0;
  for (auto& x : of.parameters()) {
    const auto mine = part_of(x, tensor);
    uint64_t row = 0, column = 0;
    for (uint32_t i = 0; i < tensor.index; ++i) {
      row += x.tensor == cut::rows ? part_of(x, {i, tensor.count}).rows : 0;
      column += x.tensor == cut::columns ? part_of(x, {i, tensor.count}).columns : 0;
    }
    for (uint64_t i = 0; i < mine.rows; ++i)
      for (uint64_t j = 0; j < mine.columns; ++j)
        result.push_back(whole[before + (row + i) * x.columns + column + j]);
    before += x.elements();
  }
  return result;
}

/// A layer and its input; `x` empty: any input.
struct layer_trial {
  layer_trial(const layer& what, uint64_t count, elements_list input = {})
    : of(what), samples(count), x(input.empty() ? scattered(count * what.inputs(), 3) : std::move(input)),
      w(scattered(what.elements({}), 4)), g(scattered(count * what.outputs(), 5)) {}

  const layer& of;
  uint64_t samples;
  elements_list x, w, g;
};

/// Elements of all parameters that learn; they come before statistics.
inline uint64_t learning_elements(const layer& of) {
  uint64_t result = 0;
  for (auto& x : of.parameters())
    result += x.is_statistic ? 0 : x.elements();
  return result;
}

/// Checks gradients against small differences, for some hundred elements at most. `numbers`: samples are symbols, not
/// numbers that could be a little larger.
inline void check_gradients(const layer& of, uint64_t samples, elements_list numbers = {}) {
  constexpr double step = 1e-6;
  constexpr size_t elements_max = 100;
  CAPTURE(of.name());
  const bool by_input = numbers.empty();
  layer_trial trial{of, samples, std::move(numbers)};
  const auto found = backward(of, samples, {}, trial.x, trial.w, trial.g);
  auto check = [&](elements_list& at, size_t count, const elements_list& gradient) {
    for (size_t i = 0; i < count; i += 1 + count / elements_max) {
      const auto before = at[i];
      at[i] = before + step;
      const auto above = product(forward(of, samples, {}, trial.x, trial.w), trial.g);
      at[i] = before - step;
      const auto below = product(forward(of, samples, {}, trial.x, trial.w), trial.g);
      at[i] = before;
      CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6));
    }
  };
  if (by_input)
    check(trial.x, trial.x.size(), found.by_input);
  check(trial.w, learning_elements(of), found.by_weight);
}

/// Checks that either gradient can be computed alone.
inline void check_halves(const layer& of, uint64_t samples, elements_list numbers = {}) {
  CAPTURE(of.name());
  const layer_trial trial{of, samples, std::move(numbers)};
  const auto both = backward(of, samples, {}, trial.x, trial.w, trial.g);
  gradients alone{elements_list(trial.w.size()), elements_list(trial.x.size())};
  const pass at{precision::float64, samples, {}, samples};
  of.backward(at, bytes(trial.x), bytes(trial.w), bytes(trial.g), bytes(alone.by_weight), nullptr);
  of.backward(at, bytes(trial.x), bytes(trial.w), bytes(trial.g), nullptr, bytes(alone.by_input));
  CHECK(alone.by_weight == both.by_weight);
  CHECK(alone.by_input == both.by_input);
}

/// Checks that outputs of ranks that share a layer by columns are side by side in the whole layer's, gradients too.
inline void check_columns(const layer& whole, uint64_t samples, uint32_t ranks) {
  CAPTURE(whole.name());
  CAPTURE(ranks);
  const auto of = whole.by_columns();
  REQUIRE(of != nullptr);
  CHECK((of->makes_columns() && of->replicated() == 0));
  const layer_trial trial{whole, samples};
  const auto y = forward(whole, samples, {}, trial.x, trial.w);
  const auto all = backward(whole, samples, {}, trial.x, trial.w, trial.g);
  elements_list by_input(trial.x.size());
  auto near = [](double expected) { return doctest::Approx(expected).epsilon(1e-12); };
  uint64_t first = 0;
  for (uint32_t i = 0; i < ranks; ++i) {
    const shard mine{i, ranks};
    const auto part = part_of_weights(*of, mine, trial.w), by_part = part_of_weights(*of, mine, all.by_weight);
    const auto columns = part.size() / (whole.inputs() + 1); // and a bias each
    elements_list g;
    for (uint64_t row = 0; row < samples; ++row)
      for (uint64_t column = 0; column < columns; ++column)
        g.push_back(trial.g[row * whole.outputs() + first + column]);
    const auto its_y = forward(*of, samples, mine, trial.x, part);
    const auto its = backward(*of, samples, mine, trial.x, part, g);
    for (uint64_t j = 0; j < samples * columns; ++j)
      CHECK(its_y[j] == near(y[j / columns * whole.outputs() + first + j % columns]));
    for (size_t j = 0; j < part.size(); ++j)
      CHECK(its.by_weight[j] == near(by_part[j]));
    std::ranges::transform(by_input, its.by_input, by_input.begin(), std::plus{});
    first += columns;
  }
  CHECK(first == whole.outputs());
  for (size_t j = 0; j < by_input.size(); ++j)
    CHECK(by_input[j] == near(all.by_input[j]));
}

/// Checks that outputs of tensor-parallel ranks add up to the whole layer's, and so do their gradients by a common
/// input.
inline void check_shards(const layer& of, uint64_t samples, uint32_t ranks, elements_list numbers = {}) {
  CAPTURE(of.name());
  CAPTURE(ranks);
  CHECK(!of.cannot_share(ranks));
  const layer_trial trial{of, samples, std::move(numbers)};
  const auto y = forward(of, samples, {}, trial.x, trial.w);
  const auto whole = backward(of, samples, {}, trial.x, trial.w, trial.g);
  elements_list y_sum(y.size()), by_input(trial.x.size()), replicated(of.replicated());
  auto near = [](double expected) { return doctest::Approx(expected).epsilon(1e-12); };
  for (uint32_t i = 0; i < ranks; ++i) {
    const shard mine{i, ranks};
    const auto part = part_of_weights(of, mine, trial.w), cut_part = part_of_weights(of, mine, whole.by_weight);
    REQUIRE(part.size() == of.elements(mine));
    const auto its_y = forward(of, samples, mine, trial.x, part);
    const auto its = backward(of, samples, mine, trial.x, part, trial.g);
    std::ranges::transform(y_sum, its_y, y_sum.begin(), std::plus{});
    std::ranges::transform(by_input, its.by_input, by_input.begin(), std::plus{});
    const auto own = part.size() - replicated.size();
    for (size_t j = 0; j < part.size(); ++j)
      if (j < own)
        CHECK(its.by_weight[j] == near(cut_part[j]));
      else
        replicated[j - own] += its.by_weight[j];
  }
  for (size_t j = 0; j < y.size(); ++j)
    CHECK(y_sum[j] == near(y[j]));
  for (size_t j = 0; j < by_input.size(); ++j)
    CHECK(by_input[j] == near(whole.by_input[j]));
  for (size_t j = 0; j < replicated.size(); ++j)
    CHECK(replicated[j] == near(whole.by_weight[whole.by_weight.size() - replicated.size() + j]));
}

} // namespace ringmaster::training
