#include "runtime/training/layers/optimizer.hpp"

#include <cmath>

namespace ringmaster::training {

namespace {

// An element's results lie where it lay, or in other memory: ivdep.

template <class T>
void descend(const optimizer& x, uint64_t elements, const T* from, T* w, const T* gradient) {
  const auto rate = static_cast<T>(x.rate), decay = static_cast<T>(x.weight_decay);
#pragma GCC ivdep
  for (uint64_t i = 0; i < elements; ++i)
    w[i] = from[i] - rate * (gradient[i] + decay * from[i]);
}

template <class T>
void adam(const optimizer& x, uint64_t number, uint64_t elements, const T* from, const T* old_state, T* w, T* state,
          const T* gradient) {
  const bool apart = x.kind == optimizer_kind::adamw;
  const auto n = static_cast<double>(number);
  const auto step = static_cast<T>(x.rate / (1 - std::pow(x.beta1, n)));
  const auto second = static_cast<T>(std::sqrt(1 - std::pow(x.beta2, n)));
  const auto beta1 = static_cast<T>(x.beta1), beta2 = static_cast<T>(x.beta2), epsilon = static_cast<T>(x.epsilon);
  const auto shrink = static_cast<T>(apart ? 1 - x.rate * x.weight_decay : 1);
  const auto decay = static_cast<T>(apart ? 0 : x.weight_decay);
  auto *m = state, *v = state + elements;
  const auto *old_m = old_state, *old_v = old_state + elements;
#pragma GCC ivdep
  for (uint64_t i = 0; i < elements; ++i) {
    const auto g = gradient[i] + decay * from[i];
    m[i] = beta1 * old_m[i] + (1 - beta1) * g;
    v[i] = beta2 * old_v[i] + (1 - beta2) * g * g;
    w[i] = shrink * from[i] - step * m[i] / (std::sqrt(v[i]) / second + epsilon);
  }
}

template <class T>
void update_as(const optimizer& x, uint64_t number, uint64_t elements, optimizer::before from, std::byte* w,
               std::byte* state, const std::byte* gradient) {
  auto* weights = reinterpret_cast<T*>(w);
  auto* old = reinterpret_cast<const T*>(from.w);
  auto* by_weight = reinterpret_cast<const T*>(gradient);
  if (x.kind == optimizer_kind::sgd)
    descend(x, elements, old, weights, by_weight);
  else
    adam(x, number, elements, old, reinterpret_cast<const T*>(from.state), weights, reinterpret_cast<T*>(state),
         by_weight);
}

} // namespace

std::string_view name_of(optimizer_kind x) {
  return x == optimizer_kind::sgd ? "sgd" : x == optimizer_kind::adam ? "adam" : "adamw";
}

void optimizer::update(precision as, uint64_t number, uint64_t elements, before from, std::byte* w, std::byte* state,
                       const std::byte* gradient) const {
  if (as == precision::float32)
    update_as<float>(*this, number, elements, from, w, state, gradient);
  else
    update_as<double>(*this, number, elements, from, w, state, gradient);
}

} // namespace ringmaster::training
