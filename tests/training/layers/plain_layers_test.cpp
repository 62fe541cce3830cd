// Layers by themselves: figures by hand, gradients beside differences, shards beside the whole.
#include "messages/errc.hpp"
#include "tests/support/training/layer_checks.hpp"
#include "training/layers/matrix_products.hpp"
#include "training/layers/optimizer.hpp"
#include "training/layers/plain_layers.hpp"
#include "training/layers/softmax_loss.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster::training;

namespace {

std::vector<std::unique_ptr<const layer>> some_layers() {
  std::vector<std::unique_ptr<const layer>> all;
  for (auto f : {nonlinearity::none, nonlinearity::relu, nonlinearity::tanh}) {
    all.push_back(linear(7, 5, f));
    all.push_back(feed_forward(6, 9, f));
  }
  return all;
}

/// In place.
void take_step(const optimizer& by, uint64_t number, elements_list& w, elements_list& state, const elements_list& g) {
  by.update(precision::float64, number, w.size(), {bytes(w), bytes(state)}, bytes(w), bytes(state), bytes(g));
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
  for (auto& of : some_layers())
    check_gradients(*of, 3);
}

TEST_CASE("either gradient can be had alone") {
  for (auto& of : some_layers())
    check_halves(*of, 2);
}

TEST_CASE("what tensor-parallel ranks make adds up to the whole layer's") {
  for (auto& of : some_layers())
    for (uint32_t ranks : {2, 3, 4})
      check_shards(*of, 3, ranks);
  CHECK(ringmaster::render(linear(3, 5)->cannot_share(4)) == "the 3 rows of weight are too few for 4 ranks");
}

TEST_CASE("what ranks make by columns lies side by side in the whole layer's output") {
  for (auto f : {nonlinearity::none, nonlinearity::relu, nonlinearity::tanh})
    for (uint32_t ranks : {1, 2, 3, 5})
      check_columns(*linear(7, 5, f), 3, ranks);
  CHECK(ringmaster::render(linear(7, 5)->by_columns()->cannot_share(6))
        == "the 5 columns of weight are too few for 6 ranks");
  CHECK(feed_forward(6, 9)->by_columns() == nullptr);
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

TEST_CASE("a step gives the same in place and elsewhere") {
  constexpr size_t count = 37;
  for (auto kind : {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw}) {
    const optimizer by{.kind = kind, .rate = 0.1, .weight_decay = 0.01};
    const auto before = scattered(count, 1), g = scattered(count, 3);
    auto w = before, old_state = elements_list(2 * count, 0.5), state = old_state;
    elements_list there(count), state_there(2 * count);
    by.update(precision::float64, 2, count, {bytes(w), bytes(old_state)}, bytes(there), bytes(state_there), bytes(g));
    CHECK(w == before);
    take_step(by, 2, w, state, g);
    CHECK(w == there);
    CHECK(w != before);
    if (by.state_arrays() != 0)
      CHECK(state == state_there);
  }
}

TEST_CASE("optimizers go the steps that their papers say") {
  elements_list w{1, -2}, g{0.5, 0.25};
  elements_list none;
  take_step({.kind = optimizer_kind::sgd, .rate = 0.1, .weight_decay = 0.01}, 1, w, none, g);
  CHECK(w[0] == doctest::Approx(1 - 0.1 * (0.5 + 0.01)));
  CHECK(w[1] == doctest::Approx(-2 - 0.1 * (0.25 - 0.02)));

  // The first step of Adam is the rate, whatever the gradient's size; the second by hand.
  elements_list v{1.0}, state{0, 0};
  const optimizer adam{.kind = optimizer_kind::adam, .rate = 0.1};
  elements_list first{3.0}, second{-1.0};
  take_step(adam, 1, v, state, first);
  CHECK(v[0] == doctest::Approx(0.9));
  take_step(adam, 2, v, state, second);
  const double m = (0.9 * 0.3 - 0.1) / (1 - 0.81), s = (0.999 * 0.009 + 0.001) / (1 - 0.998001);
  CHECK(v[0] == doctest::Approx(0.9 - 0.1 * m / (std::sqrt(s) + 1e-8)));

  elements_list apart{1.0}, with{1.0}, state_a{0, 0}, state_w{0, 0};
  auto decays = adam;
  decays.weight_decay = 0.5;
  take_step(decays, 1, with, state_a, first);
  decays.kind = optimizer_kind::adamw;
  take_step(decays, 1, apart, state_w, first);
  CHECK(with[0] == doctest::Approx(0.9));
  CHECK(apart[0] == doctest::Approx(1 * (1 - 0.1 * 0.5) - 0.1));
}
