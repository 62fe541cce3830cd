#pragma once

#include "planner/estimates/iteration_estimate.hpp"
#include "planner/plans/plan_filter.hpp"

#include <array>
#include <functional>
#include <vector>

namespace ringmaster::training {

struct planned {
  parallel_setting how;
  iteration_estimate cost;
};

/// Bytes that a plan needs more than there are, on the device and in its share of the host's memory.
struct memory_lack {
  double device = 0, host = 0;
  double sum() const { return device + host; }
};
memory_lack lack_of(const planned& x, const gpu_system& on);

struct transformer_plans {
  uint64_t evaluated = 0;
  uint64_t fitting = 0;
  uint64_t endless = 0; ///< Of those evaluated: their time is no finite number, so they are in no list.
  bool interrupted = false;
  std::vector<planned> best;      ///< Fit in memory, fastest first.
  std::vector<planned> others;    ///< The fastest of each schedule, of FSDP and of HSDP that are none of these.
  std::vector<planned> too_large; ///< Faster than the best, but do not fit; fastest first, at most three.
  std::vector<planned> pareto;    ///< No other that fits is both as fast and as small; fastest first.
  std::vector<planned> smallest;  ///< The one that lacks the least memory, if none fits.
};

/// A question: how to train m with so many devices.
struct plan_question {
  language_model trained;
  gpu_system system;
  uint32_t devices = 1;
  uint32_t global_batch = 1;
  plan_filter filter{};
};

class found_plans;

/// The search of all plans in parts, which may be run at once, one thread each: every way that divides: tensor x
/// context x data x pipeline with experts over the first three, micro-batch, schedule, chunks, recomputation, sequence
/// parallelism, ZeRO stage, FSDP; in closed form. Whoever runs them, and in whatever order, the result is the same.
class plan_search {
public:
  static constexpr size_t parts = 64;

  /// The `count` best are wanted, by time, then by memory. The question outlives the search.
  explicit plan_search(const plan_question& asked, size_t count = 10);
  plan_search(const plan_search&) = delete;
  ~plan_search();

  /// Ways to divide the devices.
  size_t shapes() const;
  /// One part; `goes_on` is asked behind each of its shapes, and ends it early by answering false. Returns whether it
  /// never did.
  bool run(size_t part, const std::function<bool()>& goes_on);
  /// When all parts have run, or as far as they have. Once.
  transformer_plans take();

private:
  const plan_question& asked_;
  std::array<std::vector<parallel_setting>, parts> shapes_;
  std::vector<found_plans> found_; ///< By part.
};

/// All parts, in this thread. `watch` is told which part is done, and ends the search early by answering false.
transformer_plans plan_transformer(const plan_question& asked, size_t count = 10,
                                   const std::function<bool(double)>& watch = {});

/// Ways to divide the devices that a search goes through.
size_t shapes_tried(const plan_question& asked);

/// Whether there is any plan, or any that fits.
bool any_plan(const plan_question& asked, bool that_fits);

} // namespace ringmaster::training
