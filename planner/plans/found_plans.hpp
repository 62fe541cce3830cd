#pragma once

#include "planner/estimates/iteration_estimate.hpp"

#include <array>
#include <vector>

namespace ringmaster::training {

/// A plan: how the model is trained, and what an iteration then costs in closed form.
struct planned {
  training_setting how;
  iteration_estimate cost;
};

/// Bytes that a plan needs beyond what is available, on the device and in its share of the host's memory.
struct memory_lack {
  double device = 0, host = 0;
  double sum() const { return device + host; }
};
memory_lack lack_of(const planned& x, const gpu_system& on);

/// What a search found.
struct transformer_plans {
  uint64_t evaluated = 0;
  uint64_t fitting = 0;
  uint64_t endless = 0; ///< Of those evaluated: their time is not finite, and they are in no list.
  bool interrupted = false;
  std::vector<planned> best;      ///< Fit in memory, fastest first.
  std::vector<planned> others;    ///< The fastest of each schedule, of FSDP and of HSDP, except those in `best`.
  std::vector<planned> too_large; ///< Faster than the best, but do not fit; fastest first, at most three.
  std::vector<planned> pareto;    ///< No other plan that fits is both as fast and as small; fastest first.
  std::vector<planned> smallest;  ///< The one that lacks the least memory, if none fits.
};

/// What a search keeps of the plans that it has estimated. Among equally good plans the first one counts.
class found_plans {
public:
  /// Keeps the `count` best.
  found_plans(const gpu_system& on, size_t count) : on_(on), count_(count) {}

  void note(const planned& x);
  /// Adds the result of another part of the same search, after this one's. Plans that are the same work, with other
  /// numbers of context ranks, belong to one part.
  void add(const found_plans& x);

  uint64_t evaluated() const { return all_.evaluated; }
  uint64_t fitting() const { return all_.fitting; }
  transformer_plans take();

private:
  void note_too_large(const planned& x);
  void note_pareto(const planned& x);
  static size_t family_of(const training_setting& how);

  const gpu_system& on_;
  size_t count_;
  std::array<std::vector<planned>, pipeline_schedules + 2>
    families_; ///< The fastest of each schedule, of FSDP and of HSDP.
  transformer_plans all_;
};

} // namespace ringmaster::training
