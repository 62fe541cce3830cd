// Products and optimizers give the same bits on another machine: what is computed in vectors is compared between
// instruction sets. What takes exp or tanh has them from the C library.
#include "tests/support/training/layer_checks.hpp"
#include "training/layers/matrix_products.hpp"
#include "training/layers/optimizer.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

template <class T>
constexpr auto precision_of = std::is_same_v<T, float> ? precision::float32 : precision::float64;

template <class T>
std::vector<T> drawn(size_t count, double seed) {
  const auto x = scattered(count, seed);
  return {x.begin(), x.end()};
}

template <class T>
auto* raw(std::vector<T>& x) {
  return reinterpret_cast<std::byte*>(x.data());
}

/// All of `run`'s results are, on each set, the bits that the baseline has.
template <class Run>
void check_same(Run run) {
  const auto expected = run(instruction_set::baseline);
  for (auto set : supported_instruction_sets()) {
    CAPTURE(name_of(set));
    const auto found = run(set);
    REQUIRE(found.size() == expected.size());
    CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(found[0])) == 0);
  }
}

} // namespace

TEST_CASE_TEMPLATE("an optimizer's step has the same bits on every instruction set", T, float, double) {
  for (auto kind : {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw})
    for (size_t count : {1, 7, 64, 1003}) {
      const optimizer by{.kind = kind, .rate = 0.003, .weight_decay = 0.01};
      check_same([&](instruction_set on) {
        auto w = drawn<T>(count, 1), state = std::vector<T>(2 * count), result = std::vector<T>{};
        for (uint32_t number = 1; number <= 3; ++number) {
          auto g = drawn<T>(count, 10.0 + number);
          by.update(precision_of<T>, number, count, {raw(w), raw(state)}, raw(w), raw(state), raw(g), on);
        }
        result = w;
        result.insert(result.end(), state.begin(), state.end());
        return result;
      });
    }
}

TEST_CASE_TEMPLATE("products of matrices have the same bits on every instruction set", T, float, double) {
  for (uint64_t n : {1, 19, 70})
    for (uint64_t k : {5, 66, 130}) {
      constexpr uint64_t m = 9;
      const auto a = drawn<T>(m * k, 1), b = drawn<T>(k * n, 2);
      check_same([&](instruction_set on) {
        auto c = drawn<T>(4 * m * n, 3);
        multiply<T>({a.data(), m, k}, {b.data(), k, n}, {c.data(), m, n}, false, on);
        multiply_transposed_first<T>({a.data(), k, m}, {b.data(), k, n}, {c.data() + m * n, m, n}, on);
        multiply_transposed_second<T>({a.data(), m, k}, {b.data(), n, k}, {c.data() + 2 * m * n, m, n}, on);
        multiply<T>({a.data(), m, k}, {b.data(), k, n}, {c.data() + 3 * m * n, m, n}, true, on);
        return c;
      });
    }
}
