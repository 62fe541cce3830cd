#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"
#include "runtime/operations/admission.hpp"
#include "runtime/operations/call_key.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <variant>

namespace ringmaster {

/// The ranks' own calls on a communicator. Each rank calls its part; when all parts of an operation have come and
/// match, it starts as if the host had called it. Every call has a ticket and is answered once: when all of its parts
/// have ended. Tickets are numbers of the user of this class.
///
///   call --its parts match--> begun --operations end--> answered
///     |                                                    |
///     +-- does not match, limit, end of communicator ------+
///
/// The user reports events; `next()` returns decisions, with their reasons, until there are none. No clock, no actor.
class call_desk {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Enqueue the request for the ranks of `epoch`. To be answered with `began` or `parts_ended`.
  struct begin_operation {
    proto::CollectiveRequest request;
    std::vector<call_part> parts;
    uint64_t group = 0; ///< The ranks' group; numbered after all groups of the host.
    epoch_number epoch;
    proto::CallOrigin origin; ///< The ranks' calls, where they have ids.
  };
  /// Ask the coordinator for these communicators. To be answered with `split_made` or `parts_ended`.
  struct begin_split {
    proto::CommDeriveRequest request;
    std::vector<call_part> parts;
  };
  /// These calls do not match, or were given up.
  struct refuse {
    caf::error reason;
  };
  struct answer_call {
    uint64_t ticket = 0;
    proto::RankCallResponse answer; ///< Without the current epoch.
  };
  using decision = std::variant<begin_operation, begin_split, refuse, answer_call>;

  explicit call_desk(communicator_id owner) : owner_(owner) {}

  /// The epoch is open over these devices, in rank order.
  void set_ranks(epoch_number epoch, std::vector<device_id> devices);
  /// The name of a device in messages.
  void name(device_id device, std::string text) { admission_.name(device, std::move(text)); }
  /// See `admission::look_elsewhere`.
  void look_elsewhere(std::function<std::string(device_id)> look) { admission_.look_elsewhere(std::move(look)); }
  /// See `admission`.
  void judge_by(std::function<caf::error(errc, proto::Verdict)> judge) { admission_.judge_by(std::move(judge)); }
  void explain_losses(std::function<std::string(device_id)> look) { admission_.explain_losses(std::move(look)); }
  /// While paused, because members change, nothing starts.
  void pause(bool paused) { paused_ = paused; }

  /// `limited`: the caller has set a limit; it also ends operations that have started.
  void call(uint64_t ticket, const proto::RankCall& x, bool limited, time_point now);
  /// The communicator was built again. A call of this device that comes again with this id is not matched once more: it
  /// is answered when these operations have ended, at once if there is none. `error`: of those that have failed.
  void recover(device_id device, call_key call, const std::vector<sequence_number>& in_flight, caf::error error = {});
  bool has(uint64_t ticket) const { return calls_.count(ticket) != 0; }
  /// The parts are operation `sequence`.
  void began(sequence_number sequence, const std::vector<call_part>& parts);
  /// Without an error the operation has succeeded, and fails only for callers that were lost meanwhile, with their
  /// results.
  void operation_ended(sequence_number sequence, const caf::error& error);
  void parts_ended(const std::vector<call_part>& parts, const caf::error& error);
  /// Writes the new communicators into the callers' answers. Returns those that no caller waits for.
  std::vector<communicator_id> split_made(const proto::CommDeriveResponse& made, const std::vector<call_part>& parts);

  /// What a call was waiting for when its limit passed.
  struct expiry {
    std::vector<sequence_number> late; ///< Operations that fail by the limit.
    std::string waited;                ///< "2.0 s"
  };
  /// `next_sequence`, `last_ended`: operations, for messages.
  expiry expire(uint64_t ticket, sequence_number next_sequence, const std::string& last_ended, time_point now);
  /// The communicator ends: all calls fail, except those whose operations have started, which end with these.
  void fail_all(const caf::error& error);

  std::optional<decision> next();

  /// Calls that have not been answered: all, and those of one device.
  size_t open() const { return calls_.size(); }
  size_t open_of(device_id device) const {
    auto found = open_of_.find(device);
    return found == open_of_.end() ? 0 : found->second;
  }
  struct waiting_call {
    std::string waits_for; ///< As in `expire`.
    std::chrono::nanoseconds age{};
  };
  /// What the oldest calls that wait for other ranks' calls are waiting for, each once.
  std::vector<waiting_call> waiting(sequence_number next_sequence, time_point now) const;
  /// By device, the call that its rank waits with.
  std::map<device_id, std::string> waiting_ranks(sequence_number next_sequence) const {
    return admission_.waiting(next_sequence);
  }
  /// The ranks that wait with calls, and for whom.
  proto::Verdict waits_in_calls(sequence_number next_sequence) const {
    return admission_.waits_in_calls(next_sequence);
  }

private:
  /// A call of one rank that has not been answered.
  struct open_call {
    size_t parts = 0; ///< That have not ended.
    proto::RankCallResponse answer;
    time_point called_at;
    device_id device;     ///< The caller's.
    bool grouped = false; ///< Its parts came in one message.
    bool limited = false;
    proto::CallId id;
  };
  /// A call that was known before the communicator was built again.
  struct recovered_call {
    std::set<sequence_number> in_flight;
    caf::error error; ///< Of those that have ended.
  };

  /// Whether the call was known before: then it is being answered, or will be.
  bool is_recovered(uint64_t ticket, const proto::RankCall& x);

  void part_ended(uint64_t ticket, const caf::error& error);
  void begin(const std::vector<call_part>& parts);
  proto::CallOrigin origin_of(const std::vector<call_part>& parts) const;
  /// Parts that all ranks have called in one group get one number, later parts another one.
  uint64_t group_of(const std::vector<call_part>& parts);

  communicator_id owner_;
  admission admission_;
  bool paused_ = false;
  std::map<epoch_number, std::vector<device_id>> ranks_; ///< Devices by epoch, of the latest.
  std::map<uint64_t, open_call> calls_;                  ///< By ticket.
  std::map<device_id, size_t> open_of_;                  ///< Of these, by their caller's device.
  struct part_under_way {
    uint64_t ticket = 0;
    device_id device; ///< The caller's.
  };
  std::map<sequence_number, std::vector<part_under_way>> under_way_; ///< By the operation's sequence.
  std::vector<uint64_t> last_tickets_;
  uint64_t groups_ = 0;
  std::map<std::pair<device_id, call_key>, recovered_call> recovered_;
  std::deque<decision> decisions_;
};

} // namespace ringmaster
