#pragma once

#include "planner/plans/found_plans.hpp"
#include "planner/plans/plan_filter.hpp"

#include <array>
#include <functional>
#include <vector>

namespace ringmaster::training {

/// Is given the finished part of the work, 0 to 1; returns false to stop it.
using plan_watch = std::function<bool(double part)>;

/// The search of all plans, in closed form: every division of the devices into tensor x context x data x pipeline with
/// experts over the first three, every micro-batch, schedule, number of virtual stages, recomputation, sequence
/// parallelism, ZeRO stage, FSDP. It consists of parts that may run at the same time, one thread each. The result does
/// not depend on the threads or on their order.
class plan_search {
public:
  static constexpr size_t parts = 64;

  /// Keeps the `count` best, by time, then by memory. The question must outlive the search.
  explicit plan_search(const plan_question& asked, size_t count = 10);
  plan_search(const plan_search&) = delete;

  /// Ways to divide the devices.
  size_t shapes() const { return shape_count_; }
  /// Runs one part, once. Calls `goes_on` after each shape; false stops the part. Returns whether it ran to its end.
  bool run(size_t part, const std::function<bool()>& goes_on);
  /// The result of all parts that have run. Once.
  transformer_plans take();

private:
  const plan_question& asked_;
  std::array<std::vector<training_setting>, parts> shapes_;
  size_t shape_count_ = 0;
  std::vector<found_plans> found_; ///< By part.
  bool taken_ = false;
};

/// Searches on the calling thread.
transformer_plans plan_transformer(const plan_question& asked, size_t count = 10, const plan_watch& watch = {});

/// Searches on up to four threads. `watch` is called by one thread at a time.
transformer_plans plan_in_parallel(const plan_question& asked, size_t count, const plan_watch& watch);

/// Ways to divide the devices that a search goes through.
size_t shapes_tried(const plan_question& asked);

/// Whether there is any plan, or any that fits.
bool any_plan(const plan_question& asked, bool that_fits);

} // namespace ringmaster::training
