#pragma once

#include <ringmaster/errors.hpp>
#include <ringmaster/ids.hpp>

#include <chrono>
#include <memory>

namespace RINGMASTER_API {

/// Calls that a rank has made and that may not have finished: torch.distributed's Work. Copies are handles of the same
/// calls. Thread-safe.
class work {
public:
  work(); ///< Calls that have finished without an error.

  /// Whether the calls have finished, with or without an error.
  bool finished() const;
  /// Waits until the calls have finished. Errors: theirs, which name ranks and values; timed_out after `within`, while
  /// the calls continue.
  expected<void> wait(std::chrono::nanoseconds within) const;
  /// The communicator's epoch when the calls finished; 0 before that. It differs from the handle's after a loss.
  epoch_number epoch() const;

  struct state;                                ///< Internal.
  explicit work(std::shared_ptr<state> calls); ///< Internal.

private:
  std::shared_ptr<state> state_;
};

} // namespace RINGMASTER_API
