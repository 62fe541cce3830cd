// With real threads, which nothing but the policy may wake.
#include "actors/scheduling/parking_policy.hpp"

#include "actors/calls/spin.hpp"
#include "actors/configuration/configuration.hpp"
#include "messages/errc.hpp"

#include <caf/all.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <optional>
#include <vector>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

constexpr auto limit = 30s;
using workers = caf::scheduler::coordinator<parking_policy>;

struct parked_system {
  explicit parked_system(size_t threads) {
    CHECK(!settings.read({"--scheduler.max-threads=" + std::to_string(threads)}, std::nullopt));
    system.emplace(settings);
  }

  parking_policy::coordinator_data& data() { return dynamic_cast<workers&>(system->scheduler()).data(); }
  template <class Condition>
  bool holds(const Condition& condition) {
    auto look = [&] {
      std::unique_lock guard{data().lock};
      return condition(data());
    };
    return spin_until(look, limit);
  }
  /// All workers sleep, and none polls.
  bool comes_to_rest() {
    auto threads = system->scheduler().num_workers();
    return holds([=](auto& x) { return x.asleep.size() == threads && !x.has_lookout; });
  }
  configuration settings;
  std::optional<caf::actor_system> system;
};

caf::behavior setter(caf::event_based_actor*, std::promise<void>* done) {
  return {[=](caf::ok_atom) { done->set_value(); }};
}

/// Holds its worker up until the other one, whom it asks or someone else does, has run.
caf::behavior waiter(caf::event_based_actor* self, caf::actor other, bool asks, std::promise<void>* begun,
                     std::promise<void>* other_done, std::promise<bool>* came) {
  return {[=](caf::ok_atom) {
    if (asks)
      self->send(other, caf::ok_atom::value); // into this worker's own queue
    begun->set_value();
    came->set_value(other_done->get_future().wait_for(limit) == std::future_status::ready);
  }};
}

bool is_done_beside(parked_system& of, bool asks) {
  std::promise<void> begun, other_done;
  std::promise<bool> came;
  auto other = of.system->spawn(setter, &other_done);
  caf::anon_send(of.system->spawn(waiter, other, asks, &begun, &other_done, &came), caf::ok_atom::value);
  begun.get_future().wait();
  if (!asks)
    caf::anon_send(other, caf::ok_atom::value);
  return came.get_future().get();
}

/// Has a thread of its own say the word when told that all workers rest.
void late_speaker(caf::blocking_actor* self, caf::actor listener, std::future<void>* rest) {
  rest->wait();
  self->send(listener, caf::ok_atom::value);
}

caf::behavior spawner(caf::event_based_actor* self, std::future<void>* rest, std::promise<void>* heard) {
  return {[=](int) { self->spawn<caf::detached>(late_speaker, caf::actor{self}, rest); },
          [=](caf::ok_atom) { heard->set_value(); }};
}

/// Passes a message on so often.
caf::behavior passer(caf::event_based_actor* self, const std::vector<caf::actor>* all, std::atomic<int>* arrived) {
  return {[=](int hops) {
    if (hops == 0)
      ++*arrived;
    else
      self->send((*all)[static_cast<size_t>(hops) % all->size()], hops - 1);
  }};
}

} // namespace

TEST_CASE("parking: what a worker is held up from is done by another one, before and after a rest") {
  parked_system of{2};
  for (int round = 0; round < 2; ++round) {
    CHECK(is_done_beside(of, true));
    CHECK(is_done_beside(of, false));
    CHECK(of.comes_to_rest());
  }
}

TEST_CASE("parking: a detached actor that a worker has spawned wakes one when all rest") {
  parked_system of{2};
  std::promise<void> all_rest, heard;
  auto rest = all_rest.get_future();
  caf::anon_send(of.system->spawn(spawner, &rest, &heard), 1);
  CHECK(of.comes_to_rest());
  all_rest.set_value();
  CHECK(heard.get_future().wait_for(limit) == std::future_status::ready);
}

TEST_CASE("parking: one worker alone does everything") {
  parked_system of{1};
  std::atomic<int> arrived = 0;
  std::vector<caf::actor> actors(1);
  actors[0] = of.system->spawn(passer, &actors, &arrived);
  caf::anon_send(actors[0], 1000);
  CHECK(spin_until([&] { return arrived == 1; }, limit));
}

TEST_CASE("parking: nothing is forgotten among many actors and workers that fall asleep and wake") {
  for (int round = 0; round < 20; ++round) {
    parked_system of{4};
    std::atomic<int> arrived = 0;
    std::vector<caf::actor> actors;
    for (int i = 0; i < 50; ++i)
      actors.push_back(of.system->spawn(passer, &actors, &arrived));
    for (int i = 0; i < 200; ++i) // some while others sleep, some while all are busy
      caf::anon_send(actors[static_cast<size_t>(i) % actors.size()], i);
    CHECK(spin_until([&] { return arrived == 200; }, limit));
  }
}

TEST_CASE("parking: another policy that is named is CAF's own") {
  configuration settings;
  CHECK(!settings.read({"--scheduler.policy='sharing'"}, std::nullopt));
  caf::actor_system system{settings};
  CHECK(dynamic_cast<workers*>(&system.scheduler()) == nullptr);
}

TEST_CASE("parking: keys that say how idle workers poll are refused where none does") {
  configuration settings;
  auto err = settings.read({"--work-stealing.relaxed-sleep-duration=50ms"}, std::nullopt);
  CHECK(render(err).find("sleep until they are woken") != std::string::npos);
}
