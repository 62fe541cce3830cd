// With the real clock, since that is what it reads.
#include "actors/scheduling/awake_clock.hpp"

#include "actors/configuration/configuration.hpp"

#include <caf/all.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

/// Runs `what` in a process of its own, which is paused for so long when it has written a byte. Returns its exit
/// status.
template <class What>
int in_paused_process(std::chrono::milliseconds pause, What what) {
  int ready[2] = {};
  REQUIRE(::pipe(ready) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0)
    ::_exit(what([&] { (void)!::write(ready[1], "", 1); }) ? 0 : 1);
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGSTOP);
  ::poll(nullptr, 0, static_cast<int>(pause.count()));
  ::kill(child, SIGCONT);
  int raw = 0;
  ::waitpid(child, &raw, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128;
}

template <class Ready>
caf::behavior waits_for_silent_one(caf::event_based_actor* self, Ready ready, std::atomic<int>* paused_ms) {
  auto silent = self->spawn([](caf::event_based_actor* other) -> caf::behavior {
    return {[other](caf::ok_atom) { return other->make_response_promise<caf::ok_atom>(); }};
  });
  const auto begun = std::chrono::steady_clock::now();
  auto end = [=] {
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begun;
    *paused_ms = static_cast<int>(passed.count());
    self->send_exit(silent, caf::exit_reason::user_shutdown);
    self->quit();
  };
  self->request(silent, 1500ms, caf::ok_atom::value).then([](caf::ok_atom) {}, [=](caf::error&) { end(); });
  ready();
  return {[](caf::ok_atom) {}};
}

} // namespace

TEST_CASE("awake_clock: a pause of the process does not count, in whatever thread reads it first") {
  const auto status = in_paused_process(2s, [](auto ready) {
    awake_clock::ticking ticks;
    std::atomic<bool> ends{false};
    std::vector<std::thread> readers;
    std::atomic<bool> went_back{false};
    for (int i = 0; i < 3; ++i)
      readers.emplace_back([&] {
        for (auto latest = awake_clock::now(); !ends;) {
          const auto now = awake_clock::now();
          went_back = went_back || now < latest;
          latest = now;
          ::poll(nullptr, 0, 1);
        }
      });
    awake_clock::note_tick();
    const auto awake = awake_clock::now();
    const auto real = std::chrono::steady_clock::now();
    ready();
    while (std::chrono::steady_clock::now() - real < 2500ms) {
      ::poll(nullptr, 0, 20);
      awake_clock::note_tick();
    }
    const auto passed = awake_clock::now() - awake;
    ends = true;
    for (auto& each : readers)
      each.join();
    return !went_back && passed < 1500ms && awake_clock::paused() > 1s;
  });
  CHECK(status == 0);
}

TEST_CASE("awake_clock: an actor's request to a peer has its whole limit, however long this process was paused") {
  const auto status = in_paused_process(3s, [](auto ready) {
    configuration cfg;
    if (cfg.read({"--scheduler.max-threads=1"}, std::nullopt))
      return false;
    std::atomic<int> passed_ms{0};
    {
      caf::actor_system system{cfg};
      system.spawn(waits_for_silent_one<decltype(ready)>, ready, &passed_ms);
    }
    return passed_ms >= 3500; // 3 s of pause, and at most half a second of it counts
  });
  CHECK(status == 0);
}
