#pragma once

#include "planner/plans/plan_filter.hpp"
#include "tools/options/option_table.hpp"

#include <optional>
#include <string>

namespace ringmaster {

/// Which plans are searched: --tensor, --context, --expert, --data, --pipeline, --chunks, --micro-batch, --schedule,
/// --exclude, --framework.
struct plan_filter_options {
  training::plan_filter filter;

  void add_to(option_table& table);
  /// The first of these options that was given, or nothing.
  std::string given() const;
  /// Whether they leave any plan of the model; else a sentence says which of them does not.
  caf::error check(const training::language_model& trained) const;

private:
  std::string range_given_;
};

/// "4", "4..8", "4..", "..8". Errors: invalid_argument.
caf::expected<training::number_range> parse_range(const std::string& text);

/// What is kept where, in which size, and what is left free: --gradients, --optimizer-states, --offload, --reserve.
struct plan_memory_options {
  std::optional<uint64_t> reserved; ///< Bytes of a GPU.
  std::string gradients = "fp32", states = "fp32";
  std::vector<std::string> offloaded;

  void add_to(option_table& table);
  void apply_to(training::plan_filter& filter) const;
  /// Sets what the system keeps free. Errors: invalid_argument, where that is all of its memory.
  caf::error reserve_in(training::gpu_system& on) const;
};

/// A run's length and what it costs: --tokens, --price.
struct plan_run_options {
  std::optional<double> tokens; ///< In all.
  std::optional<double> price;  ///< Of a GPU and an hour.

  void add_to(option_table& table);
};

} // namespace ringmaster
