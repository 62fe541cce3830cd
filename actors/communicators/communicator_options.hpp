#pragma once

#include "actors/calls/wall_clock.hpp"
#include "messages/interfaces.hpp"
#include "runtime/health/suspicion.hpp"
#include "runtime/memory/memory_neighbours.hpp"
#include "runtime/operations/waiting_ranks.hpp"
#include "runtime/selection/known_picks.hpp"

#include <caf/timespan.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace ringmaster {

class shared_memory_movers;

struct communicator_options {
  communicator_id id;
  proto::FailurePolicy policy = proto::SHRINK;
  bool deterministic = false; ///< Reductions add in rank order: runtime/rank_order/rank_order.hpp.
  std::string name;           ///< For the journal.
  suspicion::options suspect;
  caf::timespan operation_limit = std::chrono::seconds{30}; ///< Without any progress, an operation fails.
  caf::timespan spare_limit = std::chrono::seconds{5};      ///< How long a lost member's rank waits for a free device.
  uint32_t operations_max = 1024;                           ///< Called and not ended.
  bool share_memory = true; ///< Where all ranks are in reach, operations may go from memory to memory.
  /// The memories of this host's other processes, to be written; null: only those of this process are in reach.
  std::shared_ptr<memory_neighbours> neighbours;
  bool must_share = false;      ///< A communicator with a member out of reach is refused.
  bool must_link = false;       ///< One over several processes, of which one has no bulk connections, is refused.
  bool speak_by_relays = false; ///< Also with the streams of this process; for tests.
  uint32_t devices_a_host = 0;  ///< For tests: hosts by device numbers; 0: hosts as the devices lie.
  std::shared_ptr<shared_memory_movers> movers = {}; ///< Threads that help to move data; null: it moves all by itself.
  caf::timespan turn = std::chrono::microseconds{200}; ///< It moves data for so long between two looks at its mailbox.
  cost_constants costs;                                ///< Of the network between processes, for the algorithm "auto".
  /// See `outbox`. Shared by the communicators of a process.
  std::shared_ptr<std::mutex> enqueue_order = std::make_shared<std::mutex>();
  /// Shared by the communicators of a process.
  std::shared_ptr<waiting_ranks> waiting = std::make_shared<waiting_ranks>();
  wall_clock clock;
  /// Whether it is certain that no other coordinator leads the cluster: else it handles nothing. Empty: it is.
  std::function<bool()> leads = {};
  bool recoverable = false;      ///< Plans say whose calls they are, for a coordinator that is restarted.
  coordinator_actor coordinator; ///< May be invalid in tests.
  journal_actor journal;         ///< May be invalid.
};

} // namespace ringmaster
