// Loops that the compiler makes vectors of, for each of the machine's instruction sets: roots and quotients are rounded
// as IEEE 754 says, and nothing is contracted (-ffp-contract=off), so all of them give the same bits.
#include "training/layers/optimizer.hpp"

#include "runtime/reduction/compiled_for.hpp"

#include <cmath>

namespace ringmaster::training {

namespace {

// An element's results lie where it lay, or in other memory: ivdep.

template <class T>
struct descent {
  [[gnu::always_inline]] static void run(uint64_t elements, T rate, T decay, const T* from, T* w, const T* gradient) {
#pragma GCC ivdep
    for (uint64_t i = 0; i < elements; ++i)
      w[i] = from[i] - rate * (gradient[i] + decay * from[i]);
  }
};

/// Of Adam, in this step.
template <class T>
struct adam_rates {
  adam_rates(const optimizer& x, uint64_t number)
    : step(static_cast<T>(x.rate / (1 - std::pow(x.beta1, static_cast<double>(number))))),
      second(static_cast<T>(std::sqrt(1 - std::pow(x.beta2, static_cast<double>(number))))),
      beta1(static_cast<T>(x.beta1)), beta2(static_cast<T>(x.beta2)), epsilon(static_cast<T>(x.epsilon)),
      shrink(static_cast<T>(x.kind == optimizer_kind::adamw ? 1 - x.rate * x.weight_decay : 1)),
      decay(static_cast<T>(x.kind == optimizer_kind::adamw ? 0 : x.weight_decay)) {}

  T step, second, beta1, beta2, epsilon, shrink, decay;
};

template <class T>
struct adam {
  [[gnu::always_inline]] static void run(uint64_t elements, adam_rates<T> x, const T* from, const T* old_state, T* w,
                                         T* state, const T* gradient) {
    auto *m = state, *v = state + elements;
    const auto *old_m = old_state, *old_v = old_state + elements;
#pragma GCC ivdep
    for (uint64_t i = 0; i < elements; ++i) {
      const auto g = gradient[i] + x.decay * from[i];
      m[i] = x.beta1 * old_m[i] + (1 - x.beta1) * g;
      v[i] = x.beta2 * old_v[i] + (1 - x.beta2) * g * g;
      w[i] = x.shrink * from[i] - x.step * m[i] / (std::sqrt(v[i]) / x.second + x.epsilon);
    }
  }
};

template <class T>
void update_as(const optimizer& x, uint64_t number, uint64_t elements, optimizer::before from, std::byte* w,
               std::byte* state, const std::byte* gradient, instruction_set on) {
  auto* weights = reinterpret_cast<T*>(w);
  auto* old = reinterpret_cast<const T*>(from.w);
  auto* by_weight = reinterpret_cast<const T*>(gradient);
  if (x.kind == optimizer_kind::sgd)
    compiled<descent<T>>::at(on)(elements, static_cast<T>(x.rate), static_cast<T>(x.weight_decay), old, weights,
                                 by_weight);
  else
    compiled<adam<T>>::at(on)(elements, adam_rates<T>{x, number}, old, reinterpret_cast<const T*>(from.state), weights,
                              reinterpret_cast<T*>(state), by_weight);
}

} // namespace

std::string_view name_of(optimizer_kind x) {
  return x == optimizer_kind::sgd ? "sgd" : x == optimizer_kind::adam ? "adam" : "adamw";
}

void optimizer::update(precision as, uint64_t number, uint64_t elements, before from, std::byte* w, std::byte* state,
                       const std::byte* gradient, instruction_set on) const {
  if (as == precision::float32)
    update_as<float>(*this, number, elements, from, w, state, gradient, on);
  else
    update_as<double>(*this, number, elements, from, w, state, gradient, on);
}

} // namespace ringmaster::training
