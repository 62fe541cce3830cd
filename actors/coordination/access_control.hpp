#pragma once

#include "messages/interfaces.hpp"
#include "runtime/coordination/access_rules.hpp"
#include "runtime/health/restart_intensity.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/mailbox_element.hpp>

#include <map>
#include <string>

namespace ringmaster {

class coordinator_state;

/// Who calls the coordinator, whether the caller may use what the call names (`access_rules`), and the journal's record
/// of it. What a role may call at all is judged where a message enters this process (runtime/trust/permissions.hpp).
class access_control {
public:
  explicit access_control(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// Called for each message, before it is handled. A call that changes the cluster is recorded, and so is one that is
  /// refused. Errors: permission_denied, with what the caller may not use.
  caf::error admit(const caf::mailbox_element& x);
  /// Of the message that is being handled.
  const calling_process& caller() const { return caller_; }

  bool may_use(const calling_process& x, communicator_id what) const;

  /// `who` has made a communicator.
  void made(communicator_id what, const calling_process& who, size_t devices);
  /// Kept over a restart of the coordinator.
  void restored(communicator_id what, const std::string& maker) { rules_.made(what, maker); }
  void ended(communicator_id what) { rules_.ended(what); }
  void allocated(owned_range what, uint64_t bytes, std::string maker) {
    rules_.allocated(what, bytes, std::move(maker));
  }
  void freed(owned_range what) { rules_.freed(what); }
  void gone(device_id device) { rules_.gone(device); }

  /// A node has joined at the request that is being handled; it has left in good order.
  void joined(node_id node) { node_callers_[node] = caller_; }
  void left(node_id node, bool in_good_order);

  /// A call was refused, here or before it came to this actor: at most one record a second.
  void refused(const calling_process& who, const std::string& why, uint64_t others = 0);

private:
  calling_process process_of(const caf::strong_actor_ptr& sender) const;
  /// Errors: as of `admit`.
  caf::error check(const caf::type_erased_tuple& call) const;
  caf::error check_confined(const caf::type_erased_tuple& call) const;
  caf::error check_of_node(const caf::type_erased_tuple& call) const;
  caf::error check_communicator(uint64_t id) const;
  caf::error check_device(device_id id) const;
  caf::error check_memory(device_id id, uint64_t address, uint64_t bytes) const;
  /// A node, and what is said in its name, is of the process that says it.
  caf::error check_own_node(uint64_t id) const;
  void record(proto::Audit x, const calling_process& who);

  coordinator_state& coordinator_;
  access_rules rules_;
  calling_process caller_;
  std::map<node_id, calling_process> node_callers_;
  rate_limiter refusals_{std::chrono::seconds{1}};
};

} // namespace ringmaster
