#pragma once

#include "runtime/trust/role.hpp"

#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// Member and coordinator, and stranger with `trust.insecure`.
bool may_do_everything(role x);
/// Roles that reach the coordinator only, and are asked nothing: client, operator, observer.
bool is_client(role x);

/// A message that has come from another process, before any actor sees it.
struct received_message {
  std::string_view receiver; ///< The actor's name: "coordinator"; empty: it is in a third process.
  std::string_view types; ///< Of its elements, as CAF names them: "gpu_sim::DeviceId+ringmaster::proto::FaultRequest".
  bool is_response = false; ///< To a request.
};

enum class permission : uint8_t {
  allowed,
  denied, ///< Processes of another role may send it.
  never   ///< No process may: an exit message, an error that answers nothing, a type that the receiver does not know.
          ///< But the coordinator ends a device that it has given up, and a trainer its ranks.
};

/// Whether a process of this role may send the message. Who owns what it is about is not looked at: see
/// runtime/coordination/access_rules.hpp. Processes that may do everything (member, coordinator, and stranger with
/// `trust.insecure`) may send what the receiver has in its interface for other processes.
permission judge(role as, const received_message& x);

/// Why it is denied or never allowed, for people: "an observer may not kill, hang or slow devices: that needs the role
/// operator".
std::string why_not(role as, const received_message& x);

/// A row of the table: an element of an actor's interface that other processes may send.
struct permission_row {
  std::string_view receiver, types;
  std::string_view roles; ///< Beside those that may do everything: n(ode), r(ank), c(lient), o(perator), (o)b(server).
  std::string_view act;   ///< "kill, hang or slow devices"
};
std::span<const permission_row> permission_rows();

} // namespace ringmaster
