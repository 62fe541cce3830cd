#pragma once

#include "actors/streams/rank_plan.hpp"
#include "actors/streams/received_bytes.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/device_memory.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace ringmaster {

/// A series of operations whose plans came as one: which of them a rank has walked, and what it has received. The
/// results of those stay in their shadows until all ranks have finished the series.
class walked_series {
public:
  struct walk {
    rank_plan plan;
    uint64_t shadow = 0; ///< Address in the scratch area; 0: none.
    uint64_t output_bytes = 0;
    proto::RankReport::Walk report;
  };

  /// `first` has all later plans of its series.
  void set_plan(const proto::OperationPlan& first) { first_ = &first; }
  const proto::OperationPlan& first() const { return *first_; }
  size_t size() const { return 1 + static_cast<size_t>(first_->next_size()); }
  /// The plan to walk; nullptr: all have been walked.
  const proto::OperationPlan* next() const {
    const auto count = walks_.size();
    return count == 0 ? first_ : count < size() ? &first_->next(static_cast<int>(count) - 1) : nullptr;
  }

  void start(uint64_t unix_ns) {
    started_ns_ = unix_ns;
    received_.clear();
  }
  void start_walk(uint64_t unix_ns) {
    walk_started_ns_ = unix_ns;
    received_before_ = received_.total();
  }
  void end_walk(const rank_plan& plan, uint64_t shadow, uint64_t output_bytes, uint64_t unix_ns) {
    ensure(received_.total() >= received_before_, "bytes that were received are not taken back");
    ensure(walks_.size() < size(), "a walk is of the series");
    auto& report = walks_.emplace_back(walk{plan, shadow, output_bytes, {}}).report;
    report.set_sequence(plan->sequence());
    report.set_started_ns(walk_started_ns_);
    report.set_ended_ns(unix_ns);
    report.set_bytes_received(received_.total() - received_before_);
  }
  const std::vector<walk>& walks() const { return walks_; }
  received_bytes& received() { return received_; }
  const received_bytes& received() const { return received_; }

  /// Frees the shadows.
  void free(device_memory& memory) {
    for (auto& each : walks_)
      if (each.shadow != 0)
        memory.free_scratch(std::exchange(each.shadow, 0));
  }
  /// No operation has been walked, after all. The shadows are free.
  void start_again() { walks_.clear(); }

  /// Writes times and bytes.
  void write_to(proto::RankReport& x) {
    x.set_started_ns(started_ns_);
    x.set_bytes_received(received_.total());
    if (x.phase() == proto::RankReport::FINISHED || x.phase() == proto::RankReport::COMMITTED)
      received_.write_to(x);
    if (x.phase() == proto::RankReport::COMMITTED && walks_.size() > 1)
      for (auto& each : walks_)
        *x.add_walks() = std::move(each.report);
  }

private:
  const proto::OperationPlan* first_ = nullptr;
  std::vector<walk> walks_; ///< In the order of the series.
  received_bytes received_; ///< By the whole series.
  uint64_t started_ns_ = 0;
  uint64_t walk_started_ns_ = 0;
  uint64_t received_before_ = 0; ///< Bytes that were received before the current walk.
};

} // namespace ringmaster
