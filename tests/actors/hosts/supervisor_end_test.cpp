#include "actors/hosts/supervisor.hpp"

#include "tests/support/supervised_family.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

TEST_CASE("supervisor: gives up with a sentence after too many restarts in a period") {
  supervised_family x;
  x.options.restarts_max = 2;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b")});
  x.tell("a", fail);
  x.tell("b", fail);
  x.news();
  x.tell("a", fail);
  CHECK(x.news() == event_log{"-a", "-b"});
  auto reason = x.end();
  REQUIRE(reason);
  CHECK(code_of(*reason) == errc::gave_up);
  CHECK(render(*reason)
        == "supervisor top gave up: 3 restarts within 10.0 s, 2 are allowed; the last was child a: a broke");
}

TEST_CASE("supervisor: restarts that are far apart do not add up") {
  supervised_family x;
  x.options.restarts_max = 2;
  x.start(restart_strategy::one_for_one, {x.spec("a")});
  for (int i = 0; i < 20; ++i) {
    x.tell("a", fail);
    x.advance(6s);
  }
  CHECK(!x.end());
}

namespace {

/// A child without room is starved, what broke has failed.
restart_verdict by_code(const caf::error& reason) {
  return code_of(reason) == errc::io_error ? restart_verdict::starved : restart_verdict::counts;
}

} // namespace

TEST_CASE("supervisor: a child for which there is no room waits, longer each time, and the others go on") {
  supervised_family x;
  x.options.restarts_max = 1;
  x.options.judge = by_code;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b")});
  x.tell("a", fail); // it has run, and may fail once
  x.news();
  for (auto delay : {500ms, 1000ms, 2000ms, 4000ms, 8000ms, 10000ms, 10000ms}) {
    x.tell("a", starve);
    x.advance(delay - 1ms);
    CHECK(x.news() == event_log{"-a"});
    CHECK(!x.child_of(x.top, "a"));
    x.advance(1ms);
    CHECK(x.news() == event_log{"+a"});
  }
  x.advance(20s);
  x.tell("a", fail); // it ran
  CHECK(x.news() == event_log{"-a", "+a"});
  x.tell("a", starve);
  x.advance(500ms);
  CHECK(x.news() == event_log{"-a", "+a"});
  CHECK(!x.end());
}

TEST_CASE("supervisor: what starves from the first is said at once") {
  supervised_family x;
  x.options.restarts_max = 2;
  x.options.judge = by_code;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b")});
  for (int i = 0; i < 3; ++i)
    x.tell("a", starve);
  REQUIRE(x.end());
}

TEST_CASE("supervisor: while a child waits for room, the end of all is its end") {
  supervised_family x;
  x.options.judge = by_code;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b")});
  x.tell("a", fail);
  x.tell("a", starve);
  x.news();
  x.stop(x.top);
  CHECK(x.news() == event_log{"-b"});
  CHECK(x.end() == caf::error{caf::exit_reason::user_shutdown});
  x.advance(1s);
  CHECK(x.news() == event_log{});
}

TEST_CASE("supervisor: a child that cannot be started makes it give up and end the others") {
  supervised_family x;
  SUBCASE("by an exception") {
    x.start(restart_strategy::one_for_one,
            {x.spec("a"), {"b", [](auto*) -> caf::actor { throw std::runtime_error("no memory left"); }}, x.spec("c")});
    CHECK(render(x.end().value()) == "supervisor top gave up: child b cannot be started: no memory left");
  }
  SUBCASE("by an invalid handle") {
    x.start(restart_strategy::one_for_one, {x.spec("a"), {"b", [](auto*) { return caf::actor{}; }}, x.spec("c")});
    CHECK(render(x.end().value())
          == "supervisor top gave up: child b cannot be started: its start function returned an invalid handle");
  }
  CHECK(x.news() == event_log{"+a", "-a"});
}

TEST_CASE("supervisor: a child that fails to come back makes it give up") {
  supervised_family x;
  auto starts = 0;
  auto fragile = x.spec("fragile");
  fragile.start = [&, start = fragile.start](caf::event_based_actor* parent) {
    return ++starts == 1 ? start(parent) : caf::actor{};
  };
  x.start(restart_strategy::one_for_all, {x.spec("a"), fragile});
  x.tell("fragile", fail);
  CHECK(code_of(x.end().value()) == errc::gave_up);
  CHECK(x.news() == event_log{"+a", "+fragile", "-fragile", "-a", "+a", "-a"});
}

TEST_CASE("supervisor: a supervisor that gives up is a failed child of its own supervisor") {
  supervised_family x;
  child_spec nested{"inner", [&x](caf::event_based_actor* parent) {
                      supervisor_options inner{.name = "inner", .restarts_max = 1};
                      inner.children = {x.spec("a"), x.spec("b")};
                      return parent->spawn(supervisor, inner);
                    }};
  x.options.restarts_max = 1;
  x.start(restart_strategy::one_for_one, {x.spec("z"), nested});
  x.news();
  auto fail_inner = [&x] {
    x.self->send(x.child_of(x.child_of(x.top, "inner"), "a"), fail);
    x.deliver_all();
  };
  fail_inner();
  CHECK(x.news() == event_log{"-a", "+a"});
  fail_inner(); // the inner one gives up, and is started again with all of its children
  CHECK(x.news() == event_log{"-a", "-b", "+a", "+b"});
  fail_inner();
  CHECK(x.news() == event_log{"-a", "+a"});
  fail_inner(); // the outer one gives up, too
  CHECK(x.news() == event_log{"-a", "-b", "-z"});
  CHECK(render(x.end().value())
          .starts_with("supervisor top gave up: 2 restarts within 10.0 s, 1 is allowed; the last "
                       "was child inner: supervisor inner gave up: 2 restarts"));
}

TEST_CASE("supervisor: an exit message during a restart ends it all the same") {
  supervised_family x;
  x.start(restart_strategy::one_for_all, {x.spec("a"), x.spec("b", restart_kind::permanent, true), x.spec("c")});
  x.news();
  auto b = x.child_of(x.top, "b");
  x.tell("c", fail);
  x.stop(x.top);
  CHECK(!x.end());
  x.self->send(b, now_obey);
  x.deliver_all();
  CHECK(x.news() == event_log{"-c", "-b", "-a"});
  CHECK(x.end() == caf::error{caf::exit_reason::user_shutdown});
}

TEST_CASE("supervisor: a child that does not end in time is killed") {
  supervised_family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b", restart_kind::permanent, true)});
  x.news();
  x.stop(x.top);
  x.advance(5s - 1ns);
  CHECK(x.news() == event_log{});
  x.advance(1ns);
  CHECK(x.news() == event_log{"-b", "-a"});
  CHECK(x.end());
}

TEST_CASE("supervisor: another failure meanwhile gives a child no more time to end") {
  supervised_family x;
  x.start(restart_strategy::one_for_all,
          {x.spec("a"), x.spec("b"), x.spec("c", restart_kind::permanent, true), x.spec("d")});
  x.tell("d", fail);
  x.advance(4s);
  x.tell("a", fail);
  x.news();
  x.advance(1s);
  CHECK(x.news() == event_log{"-c", "-b", "+a", "+b", "+c", "+d"});
}

TEST_CASE("supervisor: the limit of one stop does not count for the next") {
  supervised_family x;
  x.start(restart_strategy::rest_for_one, {x.spec("a", restart_kind::permanent, true), x.spec("b"), x.spec("c")});
  x.tell("b", fail); // ends c at once
  x.news();
  x.advance(3s);
  x.stop(x.top);
  CHECK(x.news() == event_log{"-c", "-b"});
  x.advance(5s - 1ns);
  CHECK(x.news() == event_log{});
  x.advance(1ns);
  CHECK(x.news() == event_log{"-a"});
}

TEST_CASE("supervisor: a child that cannot even be killed is abandoned") {
  supervised_family x;
  caf::scoped_actor stuck{x.sys, true}; // reads no message, not even that it is killed
  auto handle = caf::actor_cast<caf::actor>(stuck);
  x.start(restart_strategy::one_for_one, {x.spec("a"), {"stuck", [=](auto*) { return handle; }}});
  x.stop(x.top);
  x.advance(5s);
  CHECK(!x.end());
  CHECK(x.news() == event_log{"+a"});
  x.advance(5s);
  CHECK(x.news() == event_log{"-a"});
  CHECK(x.end());
}

TEST_CASE("supervisor: killed, it takes its children with it") {
  supervised_family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b")});
  x.news();
  auto held = x.ask<std::vector<caf::actor>>(x.top, caf::get_atom_v); // not only by being unreachable
  x.self->send_exit(x.top, caf::exit_reason::kill);
  x.deliver_all();
  CHECK(x.news() == event_log{"-b", "-a"});
}
