#pragma once

#include "client/work.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_clock.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

namespace ringmaster {

class rank_mailbox; // client/rank_mailbox.hpp

/// Calls that the thread of a handle passes to the actor that makes them.
struct rank_outbox {
  struct entry {
    proto::RankCall call;
    std::shared_ptr<work::state> calls;
    caf::actor_clock::time_point called_at;
  };

  std::mutex guard;
  std::deque<entry> entries;
  std::weak_ptr<rank_mailbox> meeting; ///< The mailbox that the actor must tick.

  void put(proto::RankCall call, std::shared_ptr<work::state> calls, caf::actor_clock::time_point now) {
    std::scoped_lock lock{guard};
    entries.push_back({std::move(call), std::move(calls), now});
  }
  std::shared_ptr<rank_mailbox> looked_after() {
    std::scoped_lock lock{guard};
    return meeting.lock();
  }
  /// The oldest, `calls_max` at most.
  std::deque<entry> take(size_t calls_max) {
    std::scoped_lock lock{guard};
    if (entries.size() <= calls_max)
      return std::exchange(entries, {});
    auto end = entries.begin() + static_cast<std::ptrdiff_t>(calls_max);
    std::deque<entry> result{std::make_move_iterator(entries.begin()), std::make_move_iterator(end)};
    entries.erase(entries.begin(), end);
    return result;
  }
};

/// Makes one rank's calls in order and receives their results.
struct rank_caller_state {
  static inline const char* name = "rank";
  /// Limit of calls that were sent and not answered. Later ones wait in the outbox: calls that a rank makes ahead stay
  /// in its own process, and delay neither the calls of other ranks nor the answers that show that its process is
  /// alive.
  static constexpr size_t calls_under_way_max = 512;

  std::map<uint64_t, std::shared_ptr<work::state>> under_way;
  uint64_t calls = 0;
  caf::error gone; ///< Why calls fail: the coordinator or communicator has ended.

  void fail_all(const caf::error& why) {
    for (auto& [number, calls_of_it] : std::exchange(under_way, {}))
      finish(*calls_of_it, {}, why);
  }
};

/// The actor that makes the calls of a rank's handle. Every call has a limit, and fails with the reason if the
/// coordinator or communicator ends.
caf::behavior rank_caller(caf::stateful_actor<rank_caller_state>* self, coordinator_actor coordinator,
                          std::shared_ptr<rank_outbox> box);

} // namespace ringmaster
