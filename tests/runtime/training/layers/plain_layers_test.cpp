// Layers by themselves: figures by hand, gradients beside differences, shards beside the whole.
#include "runtime/training/layers/matrix_products.hpp"
#include "runtime/training/layers/optimizer.hpp"
#include "runtime/training/layers/plain_layers.hpp"
#include "runtime/training/layers/softmax_loss.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster::training;

namespace {

using elements_list = std::vector<double>;

const std::byte* bytes(const elements_list& x) {
  return reinterpret_cast<const std::byte*>(x.data());
}

std::byte* bytes(elements_list& x) {
  return reinterpret_cast<std::byte*>(x.data());
}

/// Of no pattern, the same at every run.
elements_list scattered(size_t count, double seed) {
  elements_list result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(std::sin(seed + 12.9898 * static_cast<double>(i)));
  return result;
}

double product(const elements_list& a, const elements_list& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

elements_list forward(const layer& of, uint64_t samples, shard tensor, const elements_list& x, const elements_list& w) {
  elements_list y(samples * of.outputs());
  of.forward({precision::float64, samples, tensor}, bytes(x), bytes(w), bytes(y));
  return y;
}

struct gradients {
  elements_list by_weight, by_input;
};

gradients backward(const layer& of, uint64_t samples, shard tensor, const elements_list& x, const elements_list& w,
                   const elements_list& by_output) {
  gradients result{elements_list(w.size()), elements_list(x.size())};
  of.backward({precision::float64, samples, tensor}, bytes(x), bytes(w), bytes(by_output), bytes(result.by_weight),
              bytes(result.by_input));
  return result;
}

/// The part of a layer's whole weights that a tensor-parallel rank has.
elements_list part_of_weights(const layer& of, shard tensor, const elements_list& whole) {
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

std::vector<std::unique_ptr<const layer>> some_layers() {
  std::vector<std::unique_ptr<const layer>> all;
  for (auto f : {nonlinearity::none, nonlinearity::relu, nonlinearity::tanh}) {
    all.push_back(linear(7, 5, f));
    all.push_back(feed_forward(6, 9, f));
  }
  return all;
}

} // namespace

TEST_CASE("a linear layer gives the figures of a worked example") {
  // W = [[11, 6, 2, 3], [4, 5, 7, 8]], b = [1, 0, 2, 1], x = [[1, 2], [3, 4]].
  const elements_list w{11, 6, 2, 3, 4, 5, 7, 8, 1, 0, 2, 1}, x{1, 2, 3, 4};
  auto of = linear(2, 4);
  CHECK(forward(*of, 2, {}, x, w) == elements_list{20, 16, 18, 20, 50, 38, 36, 42});
  auto back = backward(*of, 2, {}, x, w, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(back.by_input == elements_list{41, 67, 129, 163});
  CHECK(back.by_weight == elements_list{16, 20, 24, 28, 22, 28, 34, 40, 6, 8, 10, 12});
}

TEST_CASE("products of matrices are those of the plain loops, for sizes that fill no vector and no block") {
  for (uint64_t n : {1, 3, 17, 70})
    for (uint64_t k : {1, 5, 66})
      for (uint64_t m : {1, 4, 19}) {
        const auto a = scattered(m * k, 1), b = scattered(k * n, 2);
        elements_list at(k * m), bt(n * k), expected(m * n), c(m * n);
        for (uint64_t i = 0; i < m; ++i)
          for (uint64_t l = 0; l < k; ++l) {
            at[l * m + i] = a[i * k + l];
            for (uint64_t j = 0; j < n; ++j) {
              bt[j * k + l] = b[l * n + j];
              expected[i * n + j] += a[i * k + l] * b[l * n + j];
            }
          }
        auto check = [&] {
          for (size_t i = 0; i < c.size(); ++i)
            CHECK(c[i] == doctest::Approx(expected[i]).epsilon(1e-13));
        };
        multiply<double>({a.data(), m, k}, {b.data(), k, n}, {c.data(), m, n});
        check();
        multiply_transposed_first<double>({at.data(), k, m}, {b.data(), k, n}, {c.data(), m, n});
        check();
        multiply_transposed_second<double>({a.data(), m, k}, {bt.data(), n, k}, {c.data(), m, n});
        check();
      }
}

TEST_CASE("gradients are what small differences say") {
  constexpr double step = 1e-6;
  for (auto& of : some_layers()) {
    CAPTURE(of->name());
    auto x = scattered(3 * of->inputs(), 3), w = scattered(of->elements({}), 4);
    const auto g = scattered(3 * of->outputs(), 5);
    const auto found = backward(*of, 3, {}, x, w, g);
    auto check = [&](elements_list& at, const elements_list& gradient) {
      for (size_t i = 0; i < at.size(); ++i) {
        const auto before = at[i];
        at[i] = before + step;
        const auto above = product(forward(*of, 3, {}, x, w), g);
        at[i] = before - step;
        const auto below = product(forward(*of, 3, {}, x, w), g);
        at[i] = before;
        CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6));
      }
    };
    check(x, found.by_input);
    check(w, found.by_weight);
  }
}

TEST_CASE("either gradient can be had alone") {
  for (auto& of : some_layers()) {
    const auto x = scattered(2 * of->inputs(), 3), w = scattered(of->elements({}), 4),
               g = scattered(2 * of->outputs(), 5);
    const auto both = backward(*of, 2, {}, x, w, g);
    gradients alone{elements_list(w.size()), elements_list(x.size())};
    const pass at{precision::float64, 2, {}};
    of->backward(at, bytes(x), bytes(w), bytes(g), bytes(alone.by_weight), nullptr);
    of->backward(at, bytes(x), bytes(w), bytes(g), nullptr, bytes(alone.by_input));
    CHECK(alone.by_weight == both.by_weight);
    CHECK(alone.by_input == both.by_input);
  }
}

TEST_CASE("what tensor-parallel ranks make adds up to the whole layer's") {
  for (auto& of : some_layers())
    for (uint32_t ranks : {2, 3, 4}) {
      CAPTURE(of->name());
      CAPTURE(ranks);
      CHECK(of->cannot_share(ranks).empty());
      const auto x = scattered(3 * of->inputs(), 6), w = scattered(of->elements({}), 7),
                 g = scattered(3 * of->outputs(), 8);
      const auto y = forward(*of, 3, {}, x, w);
      const auto whole = backward(*of, 3, {}, x, w, g);
      elements_list y_sum(y.size()), by_input(x.size()), replicated(of->replicated());
      for (uint32_t i = 0; i < ranks; ++i) {
        const shard mine{i, ranks};
        const auto part = part_of_weights(*of, mine, w);
        REQUIRE(part.size() == of->elements(mine));
        const auto its_y = forward(*of, 3, mine, x, part);
        auto its = backward(*of, 3, mine, x, part, g);
        const auto cut_part = part_of_weights(*of, mine, whole.by_weight);
        for (size_t j = 0; j < y.size(); ++j)
          y_sum[j] += its_y[j];
        for (size_t j = 0; j < x.size(); ++j)
          by_input[j] += its.by_input[j];
        const auto own = part.size() - replicated.size();
        for (size_t j = 0; j < part.size(); ++j)
          if (j < own)
            CHECK(its.by_weight[j] == doctest::Approx(cut_part[j]).epsilon(1e-12));
          else
            replicated[j - own] += its.by_weight[j];
      }
      for (size_t j = 0; j < y.size(); ++j)
        CHECK(y_sum[j] == doctest::Approx(y[j]).epsilon(1e-12));
      for (size_t j = 0; j < x.size(); ++j)
        CHECK(by_input[j] == doctest::Approx(whole.by_input[j]).epsilon(1e-12));
      for (size_t j = 0; j < replicated.size(); ++j)
        CHECK(replicated[j]
              == doctest::Approx(whole.by_weight[whole.by_weight.size() - replicated.size() + j]).epsilon(1e-12));
    }
  CHECK(linear(3, 5)->cannot_share(4) == "the 3 rows of weight are too few for 4 ranks");
}

TEST_CASE("the loss and its gradient are those of softmax with cross-entropy") {
  const elements_list y{1, 2, 3, 0, 0, 0};
  const std::vector<uint32_t> labels{2, 1};
  elements_list by_output(6);
  auto sums = softmax_loss(precision::float64, 3, bytes(y), labels, 4, bytes(by_output));
  const auto all = std::exp(-2.0) + std::exp(-1.0) + 1;
  CHECK(sums.loss == doctest::Approx(std::log(all) + std::log(3.0)));
  CHECK(sums.samples == 2);
  CHECK(sums.right == 1);
  CHECK(by_output[0] == doctest::Approx(std::exp(-2.0) / all / 4));
  CHECK(by_output[2] == doctest::Approx((1 / all - 1) / 4));
  CHECK(by_output[4] == doctest::Approx((1.0 / 3 - 1) / 4));
}

TEST_CASE("optimizers go the steps that their papers say") {
  elements_list w{1, -2}, g{0.5, 0.25};
  optimizer{.kind = optimizer_kind::sgd, .rate = 0.1, .weight_decay = 0.01}.update(precision::float64, 1, 2, bytes(w),
                                                                                   nullptr, bytes(g));
  CHECK(w[0] == doctest::Approx(1 - 0.1 * (0.5 + 0.01)));
  CHECK(w[1] == doctest::Approx(-2 - 0.1 * (0.25 - 0.02)));

  // The first step of Adam is the rate, whatever the gradient's size; the second by hand.
  elements_list v{1.0}, state{0, 0};
  const optimizer adam{.kind = optimizer_kind::adam, .rate = 0.1};
  elements_list first{3.0}, second{-1.0};
  adam.update(precision::float64, 1, 1, bytes(v), bytes(state), bytes(first));
  CHECK(v[0] == doctest::Approx(0.9));
  adam.update(precision::float64, 2, 1, bytes(v), bytes(state), bytes(second));
  const double m = (0.9 * 0.3 - 0.1) / (1 - 0.81), s = (0.999 * 0.009 + 0.001) / (1 - 0.998001);
  CHECK(v[0] == doctest::Approx(0.9 - 0.1 * m / (std::sqrt(s) + 1e-8)));

  elements_list apart{1.0}, with{1.0}, state_a{0, 0}, state_w{0, 0};
  auto decays = adam;
  decays.weight_decay = 0.5;
  decays.update(precision::float64, 1, 1, bytes(with), bytes(state_a), bytes(first));
  decays.kind = optimizer_kind::adamw;
  decays.update(precision::float64, 1, 1, bytes(apart), bytes(state_w), bytes(first));
  CHECK(with[0] == doctest::Approx(0.9));
  CHECK(apart[0] == doctest::Approx(1 * (1 - 0.1 * 0.5) - 0.1));
}
