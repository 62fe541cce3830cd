#pragma once

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace ringmaster {

/// The end of a communicator: its reason, the open requests that hold it up, and whether a client has asked for it.
class communicator_end {
public:
  bool has_begun() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  errc code() const { return code_; } ///< Of calls during and after the end.

  void begin(std::string reason, errc code) {
    ensure(!has_begun() && !reason.empty(), "an end begins once, for a reason");
    reason_ = std::move(reason);
    code_ = code;
  }

  /// A request is open that the communicator must live for.
  void hold() { ++holds_; }
  void let_go() { --holds_; }
  uint32_t holds() const { return holds_; }

  /// A client has asked to destroy the communicator.
  void ask_to_destroy() { is_asked_for_ = true; }
  bool is_asked_for() const { return is_asked_for_; }
  /// The communicator is gone, which the client hears once. Returns whether it is to hear so now.
  bool note_gone() { return is_asked_for_ && !std::exchange(is_gone_, true); }
  bool is_gone() const { return is_gone_; }

private:
  std::string reason_;
  errc code_ = errc::aborted;
  uint32_t holds_ = 0;
  bool is_asked_for_ = false;
  bool is_gone_ = false;
};

} // namespace ringmaster
