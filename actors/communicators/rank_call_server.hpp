#pragma once

#include "actors/communicators/call_limits.hpp"
#include "actors/communicators/operation_runner.hpp"
#include "actors/communicators/outbox.hpp"
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/operations/call_desk.hpp"

#include <caf/typed_response_promise.hpp>

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace ringmaster {

/// Serves the calls that a communicator's ranks make themselves: asks `call_desk` which match, and carries out what it
/// decides. Each call is answered once, also if the actor ends before.
class rank_call_server {
public:
  using promise_type = caf::typed_response_promise<proto::RankCallResponse>;
  /// Calls of one rank that are kept until they have ended. A rank's handle makes less at a time and keeps the others:
  /// `rank_caller_state::calls_under_way_max`.
  static constexpr size_t calls_open_max = 4096;

  /// `carry_out` is given what `epoch_change` decides when the coordinator has answered.
  rank_call_server(communicator_actor::pointer self, const communicator_options& options, epoch_change& epochs,
                   operation_runner& runner, call_limits& limits, outbox& out,
                   std::function<void(epoch_change::decisions)> carry_out);

  const call_desk& desk() const { return desk_; }
  void name(device_id device, std::string text) { desk_.name(device, std::move(text)); }
  /// See `admission::judge_by`.
  void judge_by(std::function<caf::error(errc, proto::Verdict)> judge) { desk_.judge_by(std::move(judge)); }
  void call(const proto::RankCall& x, promise_type promise);

  /// The communicator was built again: these were the ranks before the epoch that it opens, and these calls are known.
  void resume(epoch_number before, std::vector<device_id> devices,
              const std::vector<recovered_communicator::rank_call>& calls);
  /// Members change: calls wait for `open`.
  void members_change() { is_open_ = false; }
  /// The epoch is open over these devices, in rank order, and they know of it.
  void open(epoch_number epoch, std::vector<device_id> devices);
  void operation_ended(const operation& op);
  /// The limit of a call has passed. Returns the operations that fail by it.
  call_desk::expiry expire(uint64_t ticket);
  /// The communicator ends.
  void fail_all(const caf::error& error);
  /// Starts and answers what can be started and answered now.
  void serve();

private:
  void carry_out(call_desk::begin_operation& x);
  void carry_out(call_desk::begin_split& x);
  void carry_out(call_desk::refuse& x);
  void carry_out(call_desk::answer_call& x);

  communicator_actor::pointer self_;
  const communicator_options& options_;
  epoch_change& epochs_;
  operation_runner& runner_;
  call_limits& limits_;
  outbox& out_;
  std::function<void(epoch_change::decisions)> carry_out_;
  call_desk desk_;
  /// Calls that have not been answered, by ticket. They outlive this object.
  std::shared_ptr<std::map<uint64_t, promise_type>> promises_ = std::make_shared<std::map<uint64_t, promise_type>>();
  bool is_open_ = true;
};

} // namespace ringmaster
