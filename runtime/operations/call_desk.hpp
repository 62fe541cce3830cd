#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"
#include "runtime/operations/admission.hpp"

#include <chrono>
#include <functional>
#include <variant>

namespace ringmaster {

/// Where the ranks of a communicator call for themselves: each tells its part, and when all parts of an operation are
/// there and match, it is begun as if the host had called it. Every call that is taken has a ticket, and is answered
/// once: when all of its parts have ended, one way or the other. Tickets are the caller's numbers, which only he reads.
///
/// It is told what happens, and `next()` answers with what is to be done, and why, until there is nothing. No clock, no
/// actor: whoever asks carries it out.
class call_desk {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// The request is to be enqueued, for the ranks of `epoch`: `began` or `parts_ended` says what came of it.
  struct begin_operation {
    proto::CollectiveRequest request;
    std::vector<call_part> parts;
    uint64_t group = 0; ///< What ranks have called it in; behind all groups of the host.
    epoch_number epoch;
  };
  /// The coordinator is to be asked for these communicators: `split_made` or `parts_ended` says what came of it.
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
    proto::RankCallResponse answer; ///< But for the epoch of now.
  };
  using decision = std::variant<begin_operation, begin_split, refuse, answer_call>;

  explicit call_desk(communicator_id owner) : owner_(owner) {}

  /// The epoch is open over these devices, in rank order.
  void set_ranks(epoch_number epoch, std::vector<device_id> devices);
  /// How people are told of a device.
  void name(device_id device, std::string text) { admission_.name(device, std::move(text)); }
  /// See `admission::look_elsewhere`.
  void look_elsewhere(std::function<std::string(device_id)> look) { admission_.look_elsewhere(std::move(look)); }
  /// While members change, ranks are not what they will be in a moment: nothing is begun.
  void pause(bool paused) { paused_ = paused; }

  /// `limited`: the limit is the caller's; operations that are under way end by it, too.
  void call(uint64_t ticket, const proto::RankCall& x, bool limited, time_point now);
  bool has(uint64_t ticket) const { return calls_.count(ticket) != 0; }
  /// The parts are operation `sequence`.
  void began(sequence_number sequence, const std::vector<call_part>& parts);
  /// Without an error the operation succeeded, and fails only for callers that were lost meanwhile: their results are
  /// not there.
  void operation_ended(sequence_number sequence, const caf::error& error);
  void parts_ended(const std::vector<call_part>& parts, const caf::error& error);
  /// Tells the callers their new communicators. Returns those that nobody waits for any more.
  std::vector<communicator_id> split_made(const proto::CommDeriveResponse& made, const std::vector<call_part>& parts);

  /// What a call whose limit has passed still waited for.
  struct expiry {
    std::vector<sequence_number> late; ///< Operations that are to end by it.
    std::string waited;                ///< "2.0 s"
  };
  /// `next_sequence`, `last_ended`: of operations, as people count them.
  expiry expire(uint64_t ticket, sequence_number next_sequence, const std::string& last_ended, time_point now);
  /// The communicator ends: nobody shall wait, but for operations under way, which end, too.
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
  /// What the oldest of those that wait for other ranks' calls wait for, each once.
  std::vector<waiting_call> waiting(sequence_number next_sequence, time_point now) const;
  /// By device, what its rank waits with.
  std::map<device_id, std::string> waiting_ranks(sequence_number next_sequence) const {
    return admission_.waiting(next_sequence);
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
  };

  void part_ended(uint64_t ticket, const caf::error& error);
  void begin(const std::vector<call_part>& parts);
  /// One number for parts that all of their ranks have called in one group, and another for what comes then.
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
  std::deque<decision> decisions_;
};

} // namespace ringmaster
