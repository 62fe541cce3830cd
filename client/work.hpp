#pragma once

#include "actors/scheduling/awake_clock.hpp"
#include "messages/collective.pb.h"
#include "messages/ids.hpp"

#include <caf/error.hpp>
#include <caf/timespan.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ringmaster {

/// Result of calls that a rank has made: torch.distributed's Work. Copies refer to the same calls. Thread-safe.
class work {
public:
  struct state;

  /// Calls that have finished without an error.
  work() = default;
  explicit work(std::shared_ptr<state> calls) : calls_{std::move(calls)} {}
  /// Finishes when all of these have.
  explicit work(const std::vector<work>& all);

  /// Whether the calls have finished, with or without an error.
  bool test() const;

  /// Waits until the calls have finished. Errors: `error()`; timed_out after `limit`, while the calls continue.
  caf::error wait(caf::timespan limit) const;

  /// Why the calls failed; none if they have not failed or not finished. The error is the communicator's, with its code
  /// and a message that names ranks and values; device_lost where the coordinator has exited, unknown_communicator
  /// where the communicator has ended.
  caf::error error() const;

  /// The epoch of the communicator when the calls finished; 0 before. It differs from that of the handle if ranks have
  /// changed.
  epoch_number epoch() const;

  /// The answer of the communicator; of the first one for calls of several.
  proto::RankCallResponse answer() const;

private:
  std::shared_ptr<state> calls_;
  std::vector<work> all_;
};

/// Drives calls that make progress only while a thread polls them. Its functions may finish the calls.
class work_driver {
public:
  virtual ~work_driver() = default;
  virtual void look(work::state& calls) = 0;
  /// Returns when the calls have finished or need no driver, or at `until`.
  virtual void wait(work::state& calls, awake_clock::time_point until) = 0;
};

/// A new state, which `finish` completes. `what`, such as "rank 1 of communicator 3: all_reduce", is evaluated when an
/// error names the call.
std::shared_ptr<work::state> begin_work(std::function<std::string()> what);
/// Threads that poll the calls drive them from now on, until they finish; null: they need no driver. `on_end` receives
/// the answer.
void drive(work::state& calls, std::shared_ptr<work_driver> driver,
           std::function<void(const proto::RankCallResponse&)> on_end = {});
void finish(work::state& calls, proto::RankCallResponse answer, caf::error problem);

} // namespace ringmaster
