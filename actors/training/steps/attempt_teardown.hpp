#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::training {

/// What has to end before the next attempt at a step starts: the ranks give up the last one, the coordinator says which
/// of their devices it still has, communicators end, and ranks that leave hand over their parts of the model. Pure.
/// Belongs to a `step_change`.
class attempt_teardown {
public:
  /// Ranks and coordinator have answered, and communicators that were asked to end have ended.
  bool is_complete() const { return answers_awaited_ == 0 && gives_up_.empty(); }
  /// The ranks that have not given up their attempt yet.
  const std::set<device_id>& awaited_ranks() const { return gives_up_; }
  /// Over the ranks of the step.
  bool communicators_are_open() const { return communicators_open_; }
  /// Whether the parts of ranks that leave are on their way to the host.
  bool is_handing_over() const { return handing_over_; }
  /// What keeps the next attempt from starting, for the user; none: neither ranks nor their parts.
  std::optional<std::string> awaited() const;

  /// An attempt starts, with its communicators.
  void attempt_started();
  /// The ranks of these devices are asked to give up, and the coordinator is asked about each device.
  void start(const std::vector<device_id>& devices);
  /// Returns whether the rank was awaited.
  bool gave_up(device_id device) { return gives_up_.erase(device) > 0; }
  void coordinator_answered();
  void close_communicators();
  void communicators_closed();
  void start_handing_over();
  /// Returns whether ranks were handing over.
  bool end_handing_over() { return std::exchange(handing_over_, false); }

  /// For the log of a broken invariant.
  std::string state_text() const;

private:
  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }
  void answered();

  size_t answers_awaited_ = 0; ///< Of the coordinator and the communicators.
  std::set<device_id> gives_up_;
  bool communicators_open_ = false;
  bool handing_over_ = false;
};

} // namespace ringmaster::training
