#pragma once

#include "runtime/coordination/ownership.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/error.hpp>
#include <caf/system_messages.hpp>

#include <functional>
#include <map>
#include <set>
#include <string>

namespace ringmaster {

class coordinator_state;

/// The coordinator's clients: what each of them owns, and actors that are found by a name. When a client ends, its
/// communicators are destroyed and its memory is freed, except what it has asked to outlive it. Clients that own
/// something are monitored, and so are actors with a name.
class client_directory {
public:
  explicit client_directory(coordinator_state& coordinator) : coordinator_(coordinator) {}

  /// The client that will own what the current request makes. Invalid: no client will.
  caf::actor_addr calling_client() const;
  /// An invalid client owns nothing.
  void own(const caf::actor_addr& client, communicator_id what);
  void own(const caf::actor_addr& client, owned_range what);
  void freed(owned_range what);
  void communicator_ended(communicator_id what);
  /// Ends what a client owned before the coordinator was restarted, and that has not come back.
  void end_without_owner(ownership::belongings left);
  void device_gone(device_id device);

  /// From now on this actor is found by that name.
  void publish(const std::string& name, const caf::strong_actor_ptr& who);
  /// Null: no actor has that name, or it has ended.
  caf::strong_actor_ptr find(const std::string& name) const;
  const std::map<std::string, caf::actor_addr>& published() const { return published_; }

  /// An actor has ended: its names are free.
  void withdraw_names(const caf::actor_addr& who);
  /// The same, where it may be a client: what it owns is destroyed.
  void ended(const caf::down_msg& x);

private:
  using end_function = std::function<void(communicator_id, const caf::error& reason)>;

  void destroy(communicator_id id, const std::string& reason, const end_function& ended);
  client_id id_of(const caf::actor_addr& client);
  void monitor(const caf::actor_addr& client, client_id id);
  void client_gone(client_id client, const std::string& why);
  void end(ownership::belongings left, const std::string& reason);
  void give_back(const std::set<owned_range>& ranges);
  /// Clients that no longer own anything need not be monitored.
  void forget_idle();

  coordinator_state& coordinator_;
  ownership owned_;
  std::map<caf::actor_addr, client_id> clients_; ///< Monitored: those that own something.
  std::map<std::string, caf::actor_addr> published_;
  client_id last_client_;
};

} // namespace ringmaster
