#include "actors/hosts/supervisor.hpp"

#include "tests/support/supervised_family.hpp"

#include <algorithm>
#include <random>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

TEST_CASE("supervisor: starts its children in order and stops them in reverse order") {
  supervised_family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b"), x.spec("c")});
  CHECK(x.news() == event_log{"+a", "+b", "+c"});
  x.stop(x.top);
  CHECK(x.news() == event_log{"-c", "-b", "-a"});
  CHECK(x.end() == caf::error{caf::exit_reason::user_shutdown});
}

TEST_CASE("supervisor: says who its children are") {
  supervised_family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b", restart_kind::temporary)});
  auto all = x.ask<std::vector<caf::actor>>(x.top, caf::get_atom_v);
  REQUIRE(all);
  CHECK(*all == std::vector<caf::actor>{x.child_of(x.top, "a"), x.child_of(x.top, "b")});
  auto unknown = x.ask<caf::actor>(x.top, caf::get_atom_v, std::string{"z"});
  REQUIRE(!unknown);
  CHECK(render(unknown.error()) == "supervisor top has no child named \"z\"");
  x.tell("b", fail);
  CHECK(!x.child_of(x.top, "b"));
}

TEST_CASE("supervisor: one_for_one starts only the failed child again") {
  supervised_family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b"), x.spec("c")});
  x.news();
  auto before = x.child_of(x.top, "b");
  x.tell("b", fail);
  CHECK(x.news() == event_log{"-b", "+b"});
  CHECK(x.child_of(x.top, "b") != before);
  CHECK(!x.end());
}

TEST_CASE("supervisor: one_for_all ends the others in reverse order before it starts all in order") {
  supervised_family x;
  x.start(restart_strategy::one_for_all, {x.spec("a"), x.spec("b"), x.spec("c")});
  x.news();
  x.tell("b", fail);
  CHECK(x.news() == event_log{"-b", "-c", "-a", "+a", "+b", "+c"});
}

TEST_CASE("supervisor: rest_for_one leaves alone who was started before the failed child") {
  supervised_family x;
  x.start(restart_strategy::rest_for_one, {x.spec("a"), x.spec("b"), x.spec("c"), x.spec("d")});
  x.news();
  x.tell("b", fail);
  CHECK(x.news() == event_log{"-b", "-d", "-c", "+b", "+c", "+d"});
}

TEST_CASE("supervisor: whether a child starts again depends on its kind and on how it ended") {
  supervised_family x;
  x.start(restart_strategy::one_for_one,
          {x.spec("permanent"), x.spec("transient", restart_kind::transient), x.spec("other", restart_kind::transient),
           x.spec("temporary", restart_kind::temporary)});
  x.news();
  x.tell("permanent", end_normally);
  CHECK(x.news() == event_log{"-permanent", "+permanent"});
  x.tell("transient", fail);
  CHECK(x.news() == event_log{"-transient", "+transient"});
  x.tell("transient", end_normally);
  CHECK(x.news() == event_log{"-transient"});
  x.self->send_exit(x.child_of(x.top, "other"), caf::exit_reason::user_shutdown);
  x.deliver_all();
  CHECK(x.news() == event_log{"-other"});
  x.tell("temporary", fail);
  CHECK(x.news() == event_log{"-temporary"});
  CHECK(!x.end());
}

TEST_CASE(
  "supervisor: a child that ended for good does not come back with the others, a temporary one does not either") {
  supervised_family x;
  x.start(restart_strategy::one_for_all, {x.spec("a"), x.spec("b", restart_kind::transient),
                                          x.spec("c", restart_kind::temporary), x.spec("d", restart_kind::transient)});
  x.tell("b", end_normally);
  x.news();
  x.tell("a", fail);
  CHECK(x.news() == event_log{"-a", "-d", "-c", "+a", "+d"});
}

TEST_CASE("supervisor: a child that dies while others are being ended starts again once, with them") {
  supervised_family x;
  x.start(restart_strategy::one_for_all,
          {x.spec("a"), x.spec("b"), x.spec("c", restart_kind::permanent, true), x.spec("d")});
  x.news();
  auto c = x.child_of(x.top, "c");
  x.tell("d", fail);
  CHECK(x.news() == event_log{"-d"}); // c is asked to stop and does not yet
  x.tell("a", fail);
  CHECK(x.news() == event_log{"-a"});
  x.self->send(c, now_obey);
  x.deliver_all();
  CHECK(x.news() == event_log{"-c", "-b", "+a", "+b", "+c", "+d"});
  auto all = x.ask<std::vector<caf::actor>>(x.top, caf::get_atom_v);
  for (const auto& handle : *all)
    CHECK(handle);
}

TEST_CASE("supervisor: a failure of an earlier child widens a restart that is under way") {
  supervised_family x;
  x.start(restart_strategy::rest_for_one,
          {x.spec("a"), x.spec("b"), x.spec("c"), x.spec("d", restart_kind::permanent, true)});
  x.news();
  auto d = x.child_of(x.top, "d");
  x.tell("c", fail);
  x.tell("a", fail);
  CHECK(x.news() == event_log{"-c", "-a"});
  x.self->send(d, now_obey);
  x.deliver_all();
  CHECK(x.news() == event_log{"-d", "-b", "+a", "+b", "+c", "+d"});
}

TEST_CASE("supervisor: whatever fails in whatever order, all permanent children run in the end") {
  for (auto strategy : {restart_strategy::one_for_one, restart_strategy::one_for_all, restart_strategy::rest_for_one})
    for (uint64_t seed = 0; seed < 100; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random{seed};
      supervised_family x;
      x.options.restarts_max = 1000;
      x.start(strategy, {x.spec("a"), x.spec("b"), x.spec("c"), x.spec("d"), x.spec("e")});
      for (int i = 0; i < 20; ++i) {
        auto all = x.ask<std::vector<caf::actor>>(x.top, caf::get_atom_v);
        for (const auto& handle : *all)
          if (handle && random() % 2 == 0)
            x.self->send(handle, static_cast<int32_t>(random() % 2));
        for (auto steps = random() % 10; steps > 0 && !x.scheduler.jobs.empty(); --steps) {
          std::swap(x.scheduler.jobs.front(), x.scheduler.jobs[random() % x.scheduler.jobs.size()]);
          x.scheduler.run_once();
        }
      }
      x.deliver_all();
      auto all = x.ask<std::vector<caf::actor>>(x.top, caf::get_atom_v);
      for (const auto& handle : *all)
        CHECK(handle);
      auto up = std::count_if(x.log.begin(), x.log.end(), [](const auto& entry) { return entry[0] == '+'; });
      CHECK(up - 5 == static_cast<std::ptrdiff_t>(x.log.size()) - up); // one start more than ends, for each
    }
}
