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
  std::string name;               ///< Of its communicators.
  precision as = precision::float32;
  bool deterministic = false;
  caf::timespan limit = std::chrono::seconds{30}; ///< For an operation.
};

/// The communicators of a step's groups, of the world and of pairs that send: each is made when it is first needed.
/// What comes to one while its operations are under way gathers, and is called together, up to some MiB, to be walked
/// as a series: the sums of a bucket of small layers cost the messages of one. They give up when a device is lost, for
/// a sum that misses a rank is worth nothing. Lives in the actor that asks for it; answers that are under way keep it.
class group_calls : public std::enable_shared_from_this<group_calls> {
public:
  using done_function = std::function<void(const caf::error&)>;

  group_calls(trainer_actor::pointer self, group_call_settings settings)
    : self_(self), settings_(std::move(settings)) {}
  group_calls(const group_calls&) = delete;

  /// Moves the data; every rank's addresses are there. It begins with the next `flush`. Errors: what the communicator
  /// says, device_lost among it, and an answer that is not of all ranks, which all have that were called together.
  void run(const exchange_desk::exchange& x, done_function done);
  /// So many elements, from the first of these ranks to the others; where they lie on each. Begins and fails as the
  /// other.
  struct place {
    uint32_t rank = 0;
    uint64_t address = 0;
  };
  void broadcast(std::span<const place> all, uint64_t count, done_function done);
  void flush();
  /// Makes the communicator of all ranks before it is needed, or where none is: a node with a rank is not drained away
  /// from under it.
  void hold();
  /// Whether operations are answered in time. The communicator answers within the limit; whether its answer arrives at
  /// all is for the owner to ask now and then: its timer serves for all operations, and one for each would cost two
  /// more wake-ups of a thread. Errors: timed_out, "the coordinator has not told within 60 s how 2 operations of
  /// communicator 1 ended".
  caf::error check_overdue() const;
  /// So much of the time nobody could hear.
  void excuse(caf::timespan late);
  /// When no stream touches memory for any of them any more. Errors: timed_out, naming a communicator that is not known
  /// to have ended, though it was asked several times: its streams may still write.
  void end(done_function done);

  struct call {
    proto::CollectiveRequest request;
    uint64_t bytes = 0; ///< Of a rank.
    done_function done;
  };
  /// How many of the first go together: one at least, and up to some MiB and the calls of a series.
  static size_t count_together(std::span<const call> waiting);

private:
  static constexpr uint32_t destroy_tries = 3;

  struct line {
    communicator_id communicator;
    uint32_t ranks = 0;
    bool busy = false; ///< Being made, or with operations under way.
    std::vector<call> under_way, waiting;
    caf::actor_clock::time_point due; ///< When we are to have heard of what is under way.
  };

  /// `ranks`: in the communicator's order.
  void run(std::vector<uint32_t> ranks, proto::CollectiveRequest request, done_function done);
  /// Of these ranks; made anew where there is none.
  void open(line& to, const std::vector<uint32_t>& ranks);
  void not_opened(line& to, const caf::error& problem);
  /// Moves the next that go together from those that wait.
  static void gather(line& of);
  void next(line& of);
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
