#pragma once

#include "actors/training/interfaces.hpp"
#include "training/computed/exchange_desk.hpp"
#include "training/layers/layer.hpp"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace ringmaster::training {

struct group_call_settings {
  coordinator_actor coordinator;
  std::vector<device_id> devices; ///< By rank.
  std::string name;               ///< Of the communicators.
  precision as = precision::float32;
  bool deterministic = false;
  caf::timespan limit = std::chrono::seconds{30}; ///< For one operation.
};

/// The communicators of a step: of its groups, of the world, and of pairs of ranks that send. Each is created when it
/// is first needed. Calls that arrive while a communicator's operations are under way wait, and are then called
/// together, up to a few MiB, as a series: the sums of a bucket of small layers cost the messages of one. A
/// communicator aborts when a device is lost, because a sum without one rank is useless. Lives in the TRAINER; pending
/// answers keep it alive.
class group_calls : public std::enable_shared_from_this<group_calls> {
public:
  using done_function = std::function<void(const caf::error&)>;

  group_calls(trainer_actor::pointer self, group_call_settings settings)
    : self_(self), settings_(std::move(settings)) {}
  group_calls(const group_calls&) = delete;

  /// Moves the data of an exchange whose addresses are all known. It starts with the next `flush`. Errors: the
  /// communicator's, such as device_lost, also if its answer is not of all ranks; all operations that were called
  /// together fail together.
  void run(const exchange_desk::exchange& x, done_function done);
  /// Copies `count` elements from the first of these places to the others. Starts and fails like `run`.
  struct place {
    uint32_t rank = 0;
    uint64_t address = 0;
  };
  void broadcast(std::span<const place> all, uint64_t count, done_function done);
  void flush();
  /// Creates the communicator of all ranks before it is needed, or if it never is: a node is not drained while one of
  /// its devices is in a communicator.
  void hold();
  /// Whether operations are answered in time. The communicator answers within the limit; the owner calls this now and
  /// then because an answer could be lost. One timer serves for all operations: a timer for each would cost two more
  /// wake-ups of a thread. Errors: timed_out, "the coordinator did not say within 60 s how 2 operations of communicator
  /// 1 ended".
  caf::error check_overdue() const;
  /// This process was paused: limits are extended by this time.
  void excuse(caf::timespan late);
  /// Ends all communicators; `done` is called when no stream uses memory for any of them. Errors: timed_out, with a
  /// communicator that is not known to have ended after several requests: its streams may still write.
  void end(done_function done);

  struct call {
    proto::CollectiveRequest request;
    uint64_t bytes = 0; ///< Of one rank.
    done_function done;
  };
  /// How many of the first calls go together: at least one, up to a few MiB and the maximum of a series.
  static size_t count_together(std::span<const call> waiting);

private:
  static constexpr uint32_t destroy_tries = 3;

  struct line {
    communicator_id communicator;
    uint32_t ranks = 0;
    bool busy = false; ///< It is being created, or has operations under way.
    std::vector<call> under_way, waiting;
    caf::actor_clock::time_point due; ///< For the answer to what is under way.
  };

  /// `ranks`: in the communicator's order.
  void run(std::vector<uint32_t> ranks, proto::CollectiveRequest request, done_function done);
  /// Creates the communicator of these ranks.
  void open(line& to, const std::vector<uint32_t>& ranks);
  void not_opened(line& to, const caf::error& problem);
  /// Moves the next calls that go together from `waiting` to `under_way`.
  static void take_next(line& of);
  void start_next(line& of);
  void destroy(communicator_id which, uint32_t tries_left, done_function done);
  void ended(line& of, const caf::error& problem);
  proto::CollectiveRequests requests_of(const line& of) const;
  caf::error check(const line& of, const gpu_sim::GetCommStatusResponse& x) const;

  trainer_actor::pointer self_;
  group_call_settings settings_;
  std::map<std::vector<uint32_t>, line> lines_; ///< By ranks.
  bool ending_ = false;
};

} // namespace ringmaster::training
