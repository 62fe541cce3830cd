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

/// What the handle's thread gives to the actor that makes its calls.
struct rank_outbox {
  struct entry {
    proto::RankCall call;
    std::shared_ptr<work::state> calls;
    caf::actor_clock::time_point called_at;
  };

  std::mutex guard;
  std::deque<entry> entries;
  std::weak_ptr<rank_mailbox> meeting; ///< To be looked after, when the actor is told.

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

/// Makes one rank's calls in their order, and hears what has become of them.
struct rank_caller_state {
  static inline const char* name = "rank";
  /// Calls that are sent and not answered. Later ones wait in the outbox: what a rank calls ahead stays in its own
  /// process, and delays neither other ranks' calls nor the answers by which its process shows that it is alive.
  static constexpr size_t calls_under_way_max = 512;

  std::map<uint64_t, std::shared_ptr<work::state>> under_way;
  uint64_t calls = 0;
  caf::error gone; ///< Why nobody answers any more.

  void fail_all(const caf::error& why) {
    for (auto& [number, calls_of_it] : std::exchange(under_way, {}))
      finish(*calls_of_it, {}, why);
  }
};

/// The actor behind a rank's handle. Every call has a limit, and ends with the reason of whoever is gone.
caf::behavior rank_caller(caf::stateful_actor<rank_caller_state>* self, coordinator_actor coordinator,
                          std::shared_ptr<rank_outbox> box);

} // namespace ringmaster
