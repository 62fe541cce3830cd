#include "runtime/health/connection_silence.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

/// A connection whose network is away from 0 s on, with something sent just then; TCP repeats it after 0.2 s, and
/// doubles the pause each time, up to `longest`.
tcp_progress after(std::chrono::milliseconds silence, std::chrono::milliseconds longest) {
  auto tried = 0ms, pause = 200ms;
  while (tried + pause <= silence) {
    tried += pause;
    pause = std::min(2 * pause, longest);
  }
  return {true, tried > 0ms, silence - tried, silence, pause};
}

/// When it is closed, looked at every half a second.
std::chrono::milliseconds closed_after(std::chrono::milliseconds limit, std::chrono::milliseconds longest) {
  auto silence = 0ms;
  while (!is_silent_too_long(silence, limit, after(silence, longest)))
    silence += 500ms;
  return silence;
}

} // namespace

TEST_CASE("connection_silence: a connection is closed when a retransmission after the limit is not answered either") {
  CHECK(closed_after(20s, 120s) == 26500ms); // tried at 12.6 s and 25.4 s
  CHECK(closed_after(20s, 1s) == 21500ms);   // tried every second
  CHECK(closed_after(5s, 120s) == 7500ms);   // at 3.0 s and 6.2 s
  for (auto limit : {1s, 2s, 5s, 10s, 60s, 600s})
    CHECK(closed_after(limit, 120s) <= 2 * limit + 1500ms);
}

TEST_CASE("connection_silence: an interruption shorter than the limit closes no connection") {
  for (auto limit : {2s, 5s, 20s, 60s})
    for (auto away = 100ms; away < limit; away += 100ms) {
      // The network is back then; TCP's next attempt is answered.
      auto silence = away;
      while (after(silence, 120s).since_sent > 0ms)
        silence += 100ms;
      CAPTURE(limit.count());
      CAPTURE(away.count());
      for (auto look = away; look <= silence; look += 100ms)
        CHECK_FALSE(is_silent_too_long(look, limit, after(look, 120s)));
    }
}

TEST_CASE("connection_silence: without anything to retransmit the limit alone counts") {
  CHECK_FALSE(is_silent_too_long(19999ms, 20s, {}));
  CHECK(is_silent_too_long(20s, 20s, {}));
  CHECK(is_silent_too_long(20s, 20s, {false, true, 1s, 1s}));
  CHECK(is_silent_too_long(20s, 20s, {true, false, 1s, 1s})); // the other host acknowledges, its process is silent
}

TEST_CASE("connection_silence: a way is lost when nothing is acknowledged, not when nothing was sent") {
  CHECK_FALSE(is_way_lost(3s, {false, false, 10s, 10s}));
  CHECK_FALSE(is_way_lost(3s, {true, true, 1s, 2999ms}));
  CHECK(is_way_lost(3s, {true, true, 1s, 3s}));
  CHECK_FALSE(is_way_lost(3s, {true, false, 0s, 6s}));  // sent just now, after a pause of this process
  CHECK_FALSE(is_way_lost(0s, {true, true, 1s, 100s})); // it has no limit
}

TEST_CASE("connection silence: bytes of a message that is not complete yet break it") {
  tcp_progress receiving;
  receiving.since_received = 200ms;
  CHECK_FALSE(is_silent_too_long(60s, 20s, receiving));
  receiving.since_received = 20s;
  CHECK(is_silent_too_long(60s, 20s, receiving));
}
