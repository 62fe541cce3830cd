#pragma once

#include "runtime/reduction/instruction_set.hpp"
#include "training/layers/layer.hpp"

#include <string_view>

namespace ringmaster::training {

enum class optimizer_kind : uint8_t { sgd, adam, adamw };

std::string_view name_of(optimizer_kind x);

/// How weights go on. Stochastic gradient descent; Adam (Kingma and Ba 2015), the decay added to the gradient as
/// PyTorch has it; AdamW (Loshchilov and Hutter 2019), the decay apart from it.
struct optimizer {
  optimizer_kind kind = optimizer_kind::sgd;
  double rate = 1e-3;
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; ///< Of Adam.

  /// What a step begins with.
  struct before {
    const std::byte *w, *state;
  };

  /// Of a state, for each element of the weight: Adam's two averages, one array behind the other.
  uint32_t state_arrays() const { return kind == optimizer_kind::sgd ? 0 : 2; }

  /// Step `number`, from 1 on, of this number of elements: from what there was to `w` and `state`, which may be the same.
  /// `state` has `state_arrays()` times as many. All instruction sets give the same bits.
  void update(precision as, uint64_t number, uint64_t elements, before from, std::byte* w, std::byte* state,
              const std::byte* gradient, instruction_set on = best_instruction_set()) const;
};

} // namespace ringmaster::training
