#pragma once

#include "training/language/executor.hpp"
#include "training/language/rank.hpp"

#include <caf/expected.hpp>

#include <string_view>

namespace ringmaster::training {

/// Of the samples of what is for experts, the positions that have been sent there.
inline position_run sent_positions(const value_tag& x) {
  return x.has == form::experts && of_activation(x.kind) ? x.positions() : position_run{};
}

/// What operations take and values hold, in units that each model states.
class cost_model {
public:
  virtual ~cost_model() = default;

  virtual std::string_view name() const = 0;
  /// What it is about, where the name does not say it: a model, a system.
  virtual std::string about() const { return {}; }
  /// Whether it says what such a strategy takes and holds.
  virtual bool knows(beyond x) const { return x == beyond::nothing; }
  /// What a rank may hold.
  virtual uint64_t room() const { return UINT64_MAX; }
  virtual std::string_view time_unit() const = 0;
  virtual std::string_view memory_unit() const = 0;

  /// What a value holds.
  virtual uint64_t memory_of(const value_tag& x) const = 0;
  /// What an operation needs while it lasts, beside values.
  virtual uint64_t working_memory(const pending&) const { return 0; }
  /// How long an operation keeps its rank, of a world of `ranks`.
  virtual double time_of(const pending& x, uint32_t world_size) const = 0;
  /// Whether a sent value is on its way only when the sending has ended; else from when it begins, and a hop costs one
  /// duration.
  virtual bool leaves_at_end() const = 0;
  /// Model FLOPs utilization, in percent; below 0: the model has none.
  virtual double mfu_percent(const model& trained, uint32_t world_size, double time) const = 0;
  /// Which of attention's scores that counts, "causal" or "full"; empty: it has no attention.
  virtual std::string_view mfu_counts() const { return {}; }
};

/// The DL-training lab of a graduate course: a GPU of 1000 TFLOP/s and 3072 GB/s. Seconds; elements of 2 bytes.
const cost_model& lab_costs();
/// LLM training puzzles (Rush 2023): abstract time; elements.
const cost_model& puzzle_costs();

/// By name: lab, puzzles. Errors: invalid_argument, naming those that there are.
caf::expected<const cost_model*> cost_model_of(std::string_view name);

} // namespace ringmaster::training
