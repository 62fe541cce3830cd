#pragma once

#include "planner/plans/transformer_plans.hpp"

#include <array>
#include <vector>

namespace ringmaster::training {

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
