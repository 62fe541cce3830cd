#pragma once

#include "actors/scheduling/awake_clock.hpp"

#include <caf/blocking_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/timespan.hpp>

#include <algorithm>
#include <optional>

namespace ringmaster {

// For threads that are no actors. CAF 0.17's `receive` with `after` and `await_data` with a limit wait by the wall
// clock: if that is set back meanwhile, they return later by the same time.

/// Waits for a message in the mailbox, `limit` at most. Returns whether there is one.
inline bool await_message(caf::blocking_actor& self, caf::timespan limit) {
  struct members : caf::blocking_actor { // protected members of CAF's class
    static auto mutex() { return &members::mtx_; }
    static auto changed() { return &members::cv_; }
  };
  return self.mailbox().synchronized_await(self.*members::mutex(), self.*members::changed(),
                                           awake_clock::now() + limit);
}

/// Waits for the end of a monitored actor, `limit` at most; 0: takes a message that has come. Other messages are
/// dropped.
inline std::optional<caf::down_msg> await_down(caf::blocking_actor& self, caf::timespan limit) {
  for (const auto until = awake_clock::now() + limit;;) {
    const auto left = std::max(until - awake_clock::now(), awake_clock::duration{0});
    if (!await_message(self, left))
      return std::nullopt;
    const auto what = self.next_message();
    if (what->content().match_elements<caf::down_msg>())
      return what->content().get_as<caf::down_msg>(0);
  }
}

} // namespace ringmaster
