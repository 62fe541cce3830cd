#pragma once

#include "actors/trust/peer_directory.hpp"
#include "runtime/trust/permissions.hpp"

#include <caf/execution_unit.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/node_id.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// Judges what comes over one connection of CAF's protocol before CAF takes it apart: messages to actors, by the role
/// of the process at the other end (`permissions.hpp`), and what CAF obeys itself:
///
///   Actors by name       "SpawnServ" and "ConfigServ" spawn actors and change the configuration: none is reached.
///   Exit messages,       end or mislead actors that expect none: none passes. That an actor of the other process has
///   links, bare errors   ended is a frame of its own, which does.
///   Forwarded frames     have the sender in them: it must be the process at the other end, unless that may do
///                        everything. So no process speaks for another one, and a forwarded message is judged where it
///                        first enters.
///
/// A request that is refused is answered with `permission_denied`. Refusals are counted, and reported once a second.
/// On the thread of connections.
class frame_guard {
public:
  frame_guard(peer_directory& peers, const caf::node_id& process, connected_peer who);
  ~frame_guard();
  frame_guard(const frame_guard&) = delete;
  frame_guard& operator=(const frame_guard&) = delete;

  /// Whether CAF may take the frame, which is no greeting.
  bool admits(caf::io::basp_broker& broker, const caf::io::basp::header& header, const std::vector<char>& content,
              caf::execution_unit* context);

private:
  struct frame;

  bool admits_message(caf::io::basp_broker& broker, const frame& x, caf::execution_unit* context);
  bool admits_notice(const frame& x);
  bool refuse(std::string why);
  /// Whether the frame may say that it is from this process.
  bool may_speak_for(const caf::node_id& process) const;

  peer_directory& peers_;
  const caf::node_id process_;
  const connected_peer who_;
};

} // namespace ringmaster
