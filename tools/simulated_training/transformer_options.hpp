#pragma once

#include "planner/estimates/iteration_estimate.hpp"
#include "planner/models/known_models.hpp"
#include "planner/models/model_file.hpp"
#include "tools/options/option_table.hpp"
#include "training/simulated/cost_model.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

constexpr double giga = 1e9; ///< Memory and parameters are printed in billions.

/// Which transformer on which system: --model, --as, --hidden, --heads, --sequence, --vocabulary, --imbalance,
/// --capacity, --multi-token, --system, --software, --precision, --attention, --mfu, --recompute.
struct transformer_options {
  std::string name = "gpt3-175b";
  std::optional<uint32_t> hidden, heads, sequence, vocabulary, multi_token;
  std::optional<double> imbalance, capacity;
  std::optional<std::string> named, family, precision_name, attention_name, counted_name, recompute, software;
  std::optional<training::gpu_system> told;
  training::gpu_system system = training::known_systems().front();
  training::recomputation again = training::recomputation::none;
  training::number_format computed_in = training::number_format::bf16;
  training::attention_kernel attention = training::attention_kernel::flash;
  std::optional<training::counted_scores> counted;

  /// What is of the model, and what is of the system; and all.
  void add_model_to(option_table& table);
  void add_system_to(option_table& table);
  void add_to(option_table& table);
  /// The first of these options that was given, or nothing.
  std::string given() const;
  /// The known model, or a file's, with what was given in place of its own. Errors: invalid_argument, or the file's.
  caf::expected<training::language_model> model(std::optional<uint32_t> layers);

private:
  /// Changes the model as the options say. Errors: invalid_argument, with what does not go together.
  caf::error change(training::language_model& x, std::optional<uint32_t> layers) const;
  caf::error change_experts(training::language_model& x) const;
};

/// A cost model that --cost-model names.
struct known_cost_model {
  std::string_view name;
  std::string_view what; ///< For help.
  /// A laboratory's, the same whatever is trained; nullptr: it is made of a transformer, whose options go with it.
  const training::cost_model& (*laboratory)() = nullptr;
  bool of_this_machine = false; ///< So no other system can be named.
  bool planned = true;          ///< `ringmaster plan` knows how to search under it.
};

/// In the order in which they are listed to people.
std::span<const known_cost_model> known_cost_models();
std::vector<std::string> cost_model_names(bool planned_only);

/// Errors: invalid_argument, naming those that there are.
caf::expected<const known_cost_model*> parse_cost_model(const std::string& text);
/// The same of those that `ringmaster plan` takes.
caf::expected<const known_cost_model*> parse_planned_cost_model(const std::string& text);

} // namespace ringmaster
