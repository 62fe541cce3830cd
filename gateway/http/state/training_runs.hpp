#pragma once

#include "gateway/http/state/json.hpp"
#include "messages/journal.pb.h"

#include <map>
#include <set>
#include <vector>

namespace ringmaster::gateway {

/// Trainings with their curves, from the records of their steps. It keeps the latest runs. Of a long run it keeps every
/// n-th step.
class training_runs {
public:
  static constexpr size_t runs_max = 32;
  static constexpr size_t points_max = 4000; ///< Of a run.

  struct point {
    uint64_t step = 0;
    uint64_t time_ns = 0;
    double loss = 0;
    double samples_per_s = 0; ///< 0: unknown.
    double step_seconds = 0;
  };
  struct run {
    uint64_t id = 0;
    uint64_t training = 0;
    std::string strategy;
    uint64_t ranks = 0;
    uint64_t first_step = 0;
    uint64_t epoch = 0;
    uint64_t samples = 0;
    uint64_t repeated = 0; ///< Steps with more than one attempt.
    uint64_t started_ns = 0;
    uint64_t number = 0; ///< Grows with each step of any run.
    point latest;
    uint64_t stride = 1; ///< Steps from one point to the next.
    std::vector<point> points;
    std::vector<point> fresh; ///< Since the last take_fresh(), every step.
  };

  /// Ignores other records.
  void add(const proto::Record& record);
  /// The latest first.
  std::vector<const run*> runs() const;

  /// `Trainings` in openapi.json, with series of at most `points` points.
  json write(size_t points) const;
  /// The same with the steps since the last call, of the runs that have any. Null: there are none.
  json take_fresh();

private:
  std::map<uint64_t, run> runs_;
  uint64_t steps_ = 0;
};

} // namespace ringmaster::gateway
