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

/// What has become of calls that a rank has made: torch.distributed's Work. Copies are handles of the same calls; any
/// thread may ask.
class work {
public:
  struct state;

  /// Calls that have ended already, well.
  work() = default;
  explicit work(std::shared_ptr<state> calls) : calls_{std::move(calls)} {}
  /// Ends when all of these have.
  explicit work(const std::vector<work>& all);

  /// Whether they have ended, well or not.
  bool test() const;

  /// Waits until they have ended. Errors: `error()`; timed_out where they have not within `limit`: they go on.
  caf::error wait(caf::timespan limit) const;

  /// Why they failed, or that nothing has. While they go on: none. Errors: the communicator's, with its code and its
  /// sentence, which names ranks and values; device_lost where the coordinator is gone, unknown_communicator where the
  /// communicator is.
  caf::error error() const;

  /// The communicator's epoch when they ended: another one than the handle's says that ranks have changed. 0: they go
  /// on.
  epoch_number epoch() const;

  /// The communicator's answer. For calls of several communicators: of the first.
  proto::RankCallResponse answer() const;

private:
  std::shared_ptr<state> calls_;
  std::vector<work> all_;
};

/// Makes calls go on that do so only while somebody looks. Its functions may end the calls.
class work_driver {
public:
  virtual ~work_driver() = default;
  virtual void look(work::state& calls) = 0;
  /// Returns when the calls have ended, or go on by themselves, or at `until`.
  virtual void wait(work::state& calls, awake_clock::time_point until) = 0;
};

/// A new state, which `finish` ends. `what`, such as "rank 1 of communicator 3: all_reduce", is asked where it is told.
std::shared_ptr<work::state> begin_work(std::function<std::string()> what);
/// From now on whoever asks drives the calls, until they end; null: they go on by themselves. `on_end` hears the
/// answer.
void drive(work::state& calls, std::shared_ptr<work_driver> driver,
           std::function<void(const proto::RankCallResponse&)> on_end = {});
void finish(work::state& calls, proto::RankCallResponse answer, caf::error problem);

} // namespace ringmaster
