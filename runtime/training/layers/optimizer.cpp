#include "runtime/training/layers/optimizer.hpp"

#include <cmath>

namespace ringmaster::training {

namespace {

template <class T>
void descend(const optimizer& x, uint64_t elements, T* w, const T* gradient) {
  const auto rate = static_cast<T>(x.rate), decay = static_cast<T>(x.weight_decay);
  for (uint64_t i = 0; i < elements; ++i)
    w[i] -= rate * (gradient[i] + decay * w[i]);
}

template <class T>
void adam(const optimizer& x, uint64_t number, uint64_t elements, T* w, T* state, const T* gradient) {
  const bool apart = x.kind == optimizer_kind::adamw;
  const auto n = static_cast<double>(number);
  const auto step = static_cast<T>(x.rate / (1 - std::pow(x.beta1, n)));
  const auto second = static_cast<T>(std::sqrt(1 - std::pow(x.beta2, n)));
  const auto beta1 = static_cast<T>(x.beta1), beta2 = static_cast<T>(x.beta2), epsilon = static_cast<T>(x.epsilon);
  const auto shrink = static_cast<T>(apart ? 1 - x.rate * x.weight_decay : 1);
  const auto decay = static_cast<T>(apart ? 0 : x.weight_decay);
  auto *m = state, *v = state + elements;
  for (uint64_t i = 0; i < elements; ++i) {
    const auto g = gradient[i] + decay * w[i];
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    w[i] = shrink * w[i] - step * m[i] / (std::sqrt(v[i]) / second + epsilon);
  }
}

template <class T>
void update_as(const optimizer& x, uint64_t number, uint64_t elements, std::byte* w, std::byte* state,
               const std::byte* gradient) {
  auto* weights = reinterpret_cast<T*>(w);
  auto* by_weight = reinterpret_cast<const T*>(gradient);
  if (x.kind == optimizer_kind::sgd)
    descend(x, elements, weights, by_weight);
  else
    adam(x, number, elements, weights, reinterpret_cast<T*>(state), by_weight);
}

} // namespace

std::string_view name_of(optimizer_kind x) {
  return x == optimizer_kind::sgd ? "sgd" : x == optimizer_kind::adam ? "adam" : "adamw";
}

void optimizer::update(precision as, uint64_t number, uint64_t elements, std::byte* w, std::byte* state,
                       const std::byte* gradient) const {
  if (as == precision::float32)
    update_as<float>(*this, number, elements, w, state, gradient);
  else
    update_as<double>(*this, number, elements, w, state, gradient);
}

} // namespace ringmaster::training
