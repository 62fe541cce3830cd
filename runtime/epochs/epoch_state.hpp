#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster {

enum class communicator_phase { active, quiescing, replacing, ending, aborted };

constexpr std::string_view name_of(communicator_phase x) {
  constexpr std::string_view names[] = {"active", "quiescing", "replacing", "ending", "aborted"};
  return names[static_cast<size_t>(x)];
}

/// The phase and the epoch of a communicator, the members that have not stopped for the epoch yet, and the data that
/// the stop waits for. The state machine is drawn in epoch_change.hpp; this object refuses every transition that is not
/// in the drawing.
class epoch_state {
public:
  explicit epoch_state(epoch_number open = epoch_number{1}) : epoch_(open) {}

  communicator_phase phase() const { return phase_; }
  epoch_number epoch() const { return epoch_; }
  bool is_active() const { return phase_ == communicator_phase::active; }
  /// Members are being stopped or replaced: the set of devices may change.
  bool is_changing() const { return !is_active() && phase_ != communicator_phase::aborted; }
  /// The communicator accepts no calls and will never accept any.
  bool is_ending() const { return phase_ == communicator_phase::ending || phase_ == communicator_phase::aborted; }

  void enter(communicator_phase next) {
    using enum communicator_phase;
    const bool is_legal = next == active      ? phase_ == quiescing
                          : next == quiescing ? !is_ending()
                          : next == replacing ? phase_ == quiescing
                          : next == ending    ? !is_ending()
                                              : phase_ == ending;
    ensure_of(*this, is_legal, "a phase follows one that it may follow");
    ensure_of(*this, to_stop_.empty() || next == quiescing || next == ending,
              "no epoch opens, no rank is replaced and no end is reached while a member has not stopped");
    phase_ = next;
  }

  // -- the stop of all members for the next epoch --

  /// Uses up an epoch number. Each of these members is to stop for it.
  void start_next_epoch(const std::vector<device_id>& members) {
    ensure_of(*this, is_changing(), "an epoch number is used up while members are being stopped");
    const auto before = epoch_;
    epoch_ = epoch_.next();
    ensure_of(*this, before < epoch_, "epochs rise");
    to_stop_ = {members.begin(), members.end()};
    ensure_of(*this, to_stop_.size() == members.size(), "a device has one rank");
  }
  /// Also of a member that is lost, and never answers. Returns whether it was still to stop.
  bool note_stopped(device_id device) { return to_stop_.erase(device) != 0; }
  bool has_stopped(device_id device) const { return to_stop_.count(device) == 0; }
  bool all_have_stopped() const { return to_stop_.empty(); }
  const std::set<device_id>& to_stop() const { return to_stop_; }

  /// Why the next epoch opens.
  void add_reason(const std::string& why) { reason_ += reason_.empty() ? why : "; " + why; }
  std::string take_reason() { return std::exchange(reason_, {}); }

  // -- data of shared-memory operations: no member is stopped while it moves --

  void start_moving() { data_moves_ = true; }
  bool data_moves() const { return data_moves_; }
  void defer_stop() {
    ensure_of(*this, data_moves_, "a stop waits only for data that moves");
    stop_is_deferred_ = true;
  }
  bool stop_is_deferred() const { return stop_is_deferred_; }
  /// Returns whether a stop was deferred, and is due now.
  bool end_moving() {
    data_moves_ = false;
    return std::exchange(stop_is_deferred_, false);
  }

  std::string state_text() const { return fmt::format("{} in epoch {}", name_of(phase_), epoch_); }

private:
  communicator_phase phase_ = communicator_phase::active;
  epoch_number epoch_;
  std::set<device_id> to_stop_;
  std::string reason_;
  bool data_moves_ = false;
  bool stop_is_deferred_ = false;
};

} // namespace ringmaster
