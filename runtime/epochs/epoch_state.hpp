#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <string>
#include <string_view>

namespace ringmaster {

enum class communicator_phase { active, quiescing, replacing, ending, aborted };

constexpr std::string_view name_of(communicator_phase x) {
  constexpr std::string_view names[] = {"active", "quiescing", "replacing", "ending", "aborted"};
  return names[static_cast<size_t>(x)];
}

/// The phase and the epoch of a communicator. The state machine is drawn in epoch_change.hpp; this object refuses every
/// transition that is not in the drawing.
class epoch_state {
public:
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
    phase_ = next;
  }

  /// The number of the epoch that the members are now being stopped for.
  void start_next_epoch() {
    ensure_of(*this, is_changing(), "an epoch number is used up while members are being stopped");
    const auto before = epoch_;
    epoch_ = epoch_.next();
    ensure_of(*this, before < epoch_, "epochs rise");
  }

  std::string state_text() const { return fmt::format("{} in epoch {}", name_of(phase_), epoch_); }

private:
  communicator_phase phase_ = communicator_phase::active;
  epoch_number epoch_{1};
};

} // namespace ringmaster
