#pragma once

#include "messages/collective.pb.h"
#include "messages/errc.hpp"
#include "messages/ids.hpp"
#include "messages/verdict.pb.h"
#include "runtime/invariants/ensure.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

/// One rank's part of an operation.
struct call_part {
  uint64_t ticket = 0; ///< Of the call that it came with.
  device_id device;    ///< The caller's.
  epoch_number epoch;  ///< That its rank numbers are of.
  proto::RankCall::Part what;
};

/// Matches the calls that the ranks of a communicator make for themselves. The k-th collective of one rank matches the
/// k-th of all others, the k-th send from a to b the k-th receive of b from a. The calls of a rank match in their
/// order; those of one group match in any order, so that two ranks may each send before they receive. Calls that cannot
/// match fail on every rank that takes part, also on ranks that call later; other calls do not fail with them.
///
/// Ranks are identified by their devices, which do not change with the membership. No clock, no actor: a pure state
/// machine.
class admission {
public:
  static constexpr size_t history_max = 64; ///< Epochs that calls may be for: the latest.

  /// Parts of one operation, of a collective in rank order, of a transfer the sender's first: either they match, with
  /// rank numbers of their epoch, or `problem` says why not.
  struct verdict {
    std::vector<call_part> parts;
    caf::error problem;
  };

  /// The members from this epoch on, in rank order. If their number is the same as before, a device at the rank of
  /// another one replaces it. The calls of lost devices fail, and transfers with them.
  void set_ranks(epoch_number epoch, std::vector<device_id> devices);

  /// The name of a device in messages; without one, messages have its number.
  void name(device_id device, std::string text) { names_[device] = std::move(text); }

  /// `look` says where the rank of a device that has not called waits instead, for messages: see `waiting_ranks`.
  void look_elsewhere(std::function<std::string(device_id)> look) { elsewhere_ = std::move(look); }

  /// `judge` makes the error of calls that fail because of a rank: the verdict has the culprits' devices and ranks, or
  /// none. Without it the error has the verdict's finding.
  void judge_by(std::function<caf::error(errc, proto::Verdict)> judge) { judge_ = std::move(judge); }

  /// `look` says why a device was lost, for messages; empty: it is not known.
  void explain_losses(std::function<std::string(device_id)> look) { losses_ = std::move(look); }

  /// A call of one rank: one part, or those of a group. Error: unknown_device, if the caller has no rank. A call for an
  /// epoch that is not known fails for all ranks, and keeps its place in their order. `next()` has the verdicts.
  caf::error call(uint64_t ticket, device_id device, epoch_number epoch, std::vector<proto::RankCall::Part> parts);

  /// The next verdict; to be called until there is none.
  std::optional<verdict> next();

  /// Gives the call up: its open parts fail, on all ranks that take part in them.
  void give_up(uint64_t ticket, const caf::error& why);
  /// The same for every open call.
  void give_up_all(const caf::error& why);

  /// What is missing: "rank 3 (device 0x4) has not called all_reduce #17". `number`: of the next operation.
  std::string waits_for(uint64_t ticket, sequence_number number) const;

  /// Gives up a call whose limit has passed, if it waits for other ranks' calls. The culprits are the ranks at the end
  /// of the wait chain, which have not called what others wait for. Where ranks wait for each other with different
  /// calls, all of these are given up: none can ever match. `evidence`: more for the text.
  void give_up_late(uint64_t ticket, sequence_number number, const std::string& evidence);

  /// The ranks that wait with calls, and for whom. `number`: of the next operation.
  proto::Verdict waits_in_calls(sequence_number number) const;

  /// By device, the call that its rank waits with: "all_reduce #17". `number`: of the next operation.
  std::map<device_id, std::string> waiting(sequence_number number) const;

  bool idle() const { return queues_.empty(); }
  /// Failed operations that are kept because some rank has yet to make its call.
  size_t failures_kept() const { return failed_.size(); }

  /// The error of a device that is no member: device_lost, "device 0x3 was lost"; none for a member.
  caf::error loss_of(device_id device) const;

private:
  /// What matching parts have in common.
  struct key {
    device_id from; ///< Devices of a transfer; 0 for a collective.
    device_id to;
    uint64_t index = 0; ///< Counts them.

    friend auto operator<=>(const key&, const key&) = default;
  };
  struct open_part {
    key where;
    call_part part;
  };
  struct entry {
    uint64_t ticket = 0;
    std::vector<open_part> open;
  };
  struct failure {
    caf::error why;
    std::set<device_id> owed; ///< Devices that have not called it yet.
  };

  /// Why a call waits.
  struct obstacle {
    std::string what;               ///< The missing calls: "all_reduce", "send to rank 1".
    std::vector<device_id> missing; ///< They have not called it.
    std::vector<device_id> blocked; ///< They have, after another call that still waits.
    bool after_own_call = false;    ///< Its own rank has called something before it, which still waits.
    sequence_number number;         ///< Of the operation that it is to become.
  };
  obstacle obstacle_of(device_id device, const entry& call, sequence_number number) const;
  std::string text_of(const obstacle& x) const;
  /// What a call waits for in the end: along the ranks that it waits for, those that these wait for, and so on.
  struct root {
    proto::Verdict::Kind kind = proto::Verdict::UNKNOWN;
    std::string what; ///< The call that culprits have not made.
    sequence_number number;
    std::vector<device_id> culprits;
    std::vector<device_id> circle; ///< They wait for each other with different calls.
  };
  root root_of(device_id device, const entry& call, sequence_number number) const;
  /// The share of a call's ranks that have made it.
  double support_of(device_id device, const entry& call) const;
  void add_culprits(proto::Verdict& to, const std::vector<device_id>& devices) const;
  caf::error error_of(errc code, proto::Verdict found) const;
  std::string loss_text(device_id device) const;

  bool is_member(device_id device) const { return rank_of(device).has_value(); }
  std::optional<uint32_t> rank_of(device_id device) const;
  /// The device that had that rank then, or the one that replaced it; 0: none.
  device_id device_of(epoch_number epoch, uint32_t rank) const;
  std::string name_of_rank(device_id device) const;
  key next_key(const call_part& part);
  void fail(const key& where, const caf::error& why);
  /// Takes the part out of its caller's queue, if it is there.
  std::optional<call_part> take(device_id device, const key& where);
  const open_part* front(device_id device, const key& where) const;
  bool match_collective();
  bool match_transfer();
  /// Every rank waits with a call, and none can ever match: they fail.
  bool find_standstill();
  /// Of ranks that each wait with a call: those that do not wait with what most wait with; all if there is no such
  /// call.
  std::vector<device_id> odd_ones() const;
  void judge(std::vector<call_part> parts);
  std::string text_of(const open_part& x) const;

  std::vector<device_id> ranks_;
  std::map<epoch_number, std::vector<device_id>> history_; ///< Devices in rank order, by epoch.
  std::map<device_id, device_id> replaced_by_;
  std::map<device_id, std::string> names_;
  std::function<std::string(device_id)> elsewhere_; ///< These three may be empty.
  std::function<std::string(device_id)> losses_;
  std::function<caf::error(errc, proto::Verdict)> judge_;
  std::map<device_id, std::deque<entry>> queues_;        ///< By device; never empty ones.
  std::map<std::pair<device_id, key>, uint64_t> called_; ///< By device and channel (its index is 0).
  std::map<key, failure> failed_;
  std::deque<verdict> verdicts_;
  uint64_t collectives_ = 0; ///< Collectives that have matched or have failed on all ranks.
};

} // namespace ringmaster
