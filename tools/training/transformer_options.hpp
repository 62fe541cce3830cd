#pragma once

#include "runtime/training/transformer/iteration_estimate.hpp"
#include "tools/options/option_table.hpp"

#include <optional>

namespace ringmaster {

constexpr double giga = 1e9; ///< Memory and parameters are told in billions.

/// Which GPT on which system: --model, --hidden, --heads, --sequence, --vocabulary, --system, --recompute.
struct transformer_options {
  std::string name = "gpt3-175b";
  std::optional<uint32_t> hidden, heads, sequence, vocabulary;
  std::optional<std::string> named, recompute;
  std::optional<training::gpu_system> told;
  training::gpu_system system = training::known_systems().front();
  training::recomputation again = training::recomputation::none;

  /// What is of the model, and what is of the system; and all.
  void add_model_to(option_table& table);
  void add_system_to(option_table& table);
  void add_to(option_table& table);
  /// The first of these options that was given, or nothing.
  std::string given() const;
  /// The known model with what was given in place of its own. Errors: invalid_argument.
  caf::expected<training::gpt> model(std::optional<uint32_t> layers);
};

} // namespace ringmaster
