#pragma once

#include "planner/plans/transformer_plans.hpp"

#include <array>
#include <vector>

namespace ringmaster::training {

/// What a search keeps of the plans that it has estimated. Of those that are equally good the one counts that came
/// first.
class found_plans {
public:
  /// The `count` best are wanted.
  found_plans(const gpu_system& on, size_t count) : on_(on), count_(count) {}

  void note(const planned& x);
  /// Of another search for the same, behind this one's. Plans that are the same work, with more or fewer of the
  /// context's ranks, are in one of both.
  void add(const found_plans& x);

  uint64_t evaluated() const { return all_.evaluated; }
  uint64_t fitting() const { return all_.fitting; }
  transformer_plans take();

private:
  void note_too_large(const planned& x);
  void note_pareto(const planned& x);
  static size_t family_of(const parallel_setting& how);

  const gpu_system& on_;
  size_t count_;
  std::array<std::vector<planned>, pipeline_schedules + 2>
    families_; ///< The fastest of each schedule, of FSDP and of HSDP.
  transformer_plans all_;
};

} // namespace ringmaster::training
