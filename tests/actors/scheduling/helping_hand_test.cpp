// With real threads: one that waits runs those that it waits for.
#include "actors/scheduling/helping_hand.hpp"

#include "actors/configuration/configuration.hpp"

#include <caf/all.hpp>
#include <doctest/doctest.h>

#include <future>
#include <thread>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

constexpr auto chain_limit = 30s;

/// Where the end of a chain of actors ran, each of which tells the next one.
caf::behavior chain_link(caf::event_based_actor* self, caf::actor next, std::promise<std::thread::id>* where) {
  return {[=](caf::ok_atom) {
    if (next)
      self->send(next, caf::ok_atom::value);
    else
      where->set_value(std::this_thread::get_id());
  }};
}

/// Tells the chain, and helps.
caf::behavior helper(caf::event_based_actor* self, caf::actor first, bool holds_up,
                     std::promise<std::thread::id>* mine) {
  return {[=](caf::ok_atom) {
    auto say = [&] {
      self->send(first, caf::ok_atom::value);
      if (holds_up) { // with more to do than one
        auto until = std::chrono::steady_clock::now() + 2 * helping_hand::patience;
        auto busy = [](caf::event_based_actor*, std::chrono::steady_clock::time_point end) -> caf::behavior {
          return {[end](caf::ok_atom) {
            while (std::chrono::steady_clock::now() < end)
              std::this_thread::yield();
          }};
        };
        self->send(self->spawn(busy, until), caf::ok_atom::value);
      }
    };
    helping_hand::help(self, say, [] { return true; });
    mine->set_value(std::this_thread::get_id());
  }};
}

/// Says the word from a thread of its own, later.
void late_word(caf::blocking_actor* self, caf::actor to, std::future<void>* when) {
  when->wait();
  self->send(to, caf::ok_atom::value);
}

caf::behavior word_spawner(caf::event_based_actor* self, caf::actor to, std::future<void>* when) {
  return {[=](caf::ok_atom) { self->spawn<caf::detached>(late_word, to, when); }};
}

struct places {
  std::thread::id helper, end_of_chain;
};

places run_chain(int length, bool holds_up) {
  configuration settings;
  REQUIRE(!settings.read({}, std::nullopt));
  caf::actor_system system{settings};
  std::promise<std::thread::id> mine, where;
  caf::actor first;
  for (int i = 0; i < length; ++i)
    first = system.spawn(chain_link, first, &where);
  auto handle = system.spawn<caf::detached>(helper, first, holds_up, &mine);
  caf::anon_send(handle, caf::ok_atom::value);
  auto at = mine.get_future(), end = where.get_future();
  REQUIRE(at.wait_for(chain_limit) == std::future_status::ready);
  REQUIRE(end.wait_for(chain_limit) == std::future_status::ready);
  return {at.get(), end.get()};
}

} // namespace

TEST_CASE("helping_hand: one that waits runs a whole chain of actors itself") {
  int in_its_thread = 0;
  for (int i = 0; i < 10; ++i) { // a thread may lose its processor for longer than its patience
    auto x = run_chain(5, false);
    in_its_thread += x.helper == x.end_of_chain ? 1 : 0;
  }
  CHECK(in_its_thread > 0);
}

TEST_CASE("helping_hand: when its patience is over, the scheduler runs the rest") {
  auto x = run_chain(5, true);
  CHECK(x.end_of_chain != x.helper);
}

TEST_CASE("helping_hand: one that was spawned where someone helped is heard after that") {
  configuration settings;
  REQUIRE(!settings.read({}, std::nullopt));
  caf::actor_system system{settings};
  std::promise<std::thread::id> mine, where;
  std::promise<void> now;
  auto when = now.get_future();
  auto listener = system.spawn(chain_link, caf::actor{}, &where);
  caf::anon_send(system.spawn<caf::detached>(helper, system.spawn(word_spawner, listener, &when), false, &mine),
                 caf::ok_atom::value);
  auto at = mine.get_future(), end = where.get_future();
  REQUIRE(at.wait_for(chain_limit) == std::future_status::ready);
  now.set_value();
  REQUIRE(end.wait_for(chain_limit) == std::future_status::ready);
  CHECK(end.get() != at.get());
}
