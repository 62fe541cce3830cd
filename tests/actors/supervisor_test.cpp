#include "actors/supervisor.hpp"

#include "tests/support/deterministic_system.hpp"

#include <spdlog/spdlog.h>

#include <random>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

using journal = std::vector<std::string>; // "+a" a has started, "-a" it has ended

/// What the children are told.
constexpr int32_t end_normally = 0, fail = 1, now_obey = 2;

struct child_options {
  std::string name;
  journal* log = nullptr;
  bool obstinate = false; ///< Takes exit messages only from `now_obey` on.
};

caf::behavior child(caf::event_based_actor* self, const child_options& options) {
  options.log->push_back("+" + options.name);
  self->attach_functor([=](const caf::error&) { options.log->push_back("-" + options.name); });
  if (options.obstinate)
    self->set_exit_handler([](const caf::exit_msg&) {});
  return [=](int32_t what) {
    if (what == now_obey)
      self->quit(caf::exit_reason::user_shutdown);
    else
      self->quit(what == fail ? make_error(errc::device_lost, options.name + " broke") : caf::error{});
  };
}

struct family : test::deterministic_system {
  family() { spdlog::set_level(spdlog::level::off); }

  ~family() {
    stop(top);
    advance(options.stop_timeout); // for the obstinate
    top = nullptr;
    spdlog::set_level(spdlog::level::info);
  }

  child_spec spec(const std::string& name, restart_kind kind = restart_kind::permanent, bool obstinate = false) {
    return {name, [=, this](caf::event_based_actor* parent) {
              return parent->spawn(child, child_options{name, &log, obstinate});
            }, kind};
  }

  /// Starts a supervisor of `children` under the strategy, as `top`.
  void start(restart_strategy strategy, std::vector<child_spec> children) {
    options.strategy = strategy;
    options.children = std::move(children);
    top = sys.spawn(supervisor, options);
    self->monitor(top);
    deliver_all();
  }

  caf::actor child_of(const caf::actor& parent, const std::string& name) {
    auto found = ask<caf::actor>(parent, caf::get_atom_v, name);
    REQUIRE(found);
    return *found;
  }

  void tell(const std::string& name, int32_t what) {
    self->send(child_of(top, name), what);
    deliver_all();
  }

  /// What was written since the last look.
  journal news() { return std::exchange(log, {}); }

  /// Why `top` ended; empty while it lives.
  std::optional<caf::error> end() {
    std::optional<caf::error> reason;
    auto none = false;
    while (!none)
      self->receive([&](caf::down_msg& down) { reason = std::move(down.reason); },
                    caf::after(0s) >> [&] { none = true; });
    return reason;
  }

  journal log;
  supervisor_options options{.name = "top"};
  caf::actor top;
};

} // namespace

TEST_CASE("supervisor: starts its children in order and stops them in reverse order") {
  family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b"), x.spec("c")});
  CHECK(x.news() == journal{"+a", "+b", "+c"});
  x.stop(x.top);
  CHECK(x.news() == journal{"-c", "-b", "-a"});
  CHECK(x.end() == caf::error{caf::exit_reason::user_shutdown});
}

TEST_CASE("supervisor: says who its children are") {
  family x;
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
  family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b"), x.spec("c")});
  x.news();
  auto before = x.child_of(x.top, "b");
  x.tell("b", fail);
  CHECK(x.news() == journal{"-b", "+b"});
  CHECK(x.child_of(x.top, "b") != before);
  CHECK(!x.end());
}

TEST_CASE("supervisor: one_for_all ends the others in reverse order before it starts all in order") {
  family x;
  x.start(restart_strategy::one_for_all, {x.spec("a"), x.spec("b"), x.spec("c")});
  x.news();
  x.tell("b", fail);
  CHECK(x.news() == journal{"-b", "-c", "-a", "+a", "+b", "+c"});
}

TEST_CASE("supervisor: rest_for_one leaves alone who was started before the failed child") {
  family x;
  x.start(restart_strategy::rest_for_one, {x.spec("a"), x.spec("b"), x.spec("c"), x.spec("d")});
  x.news();
  x.tell("b", fail);
  CHECK(x.news() == journal{"-b", "-d", "-c", "+b", "+c", "+d"});
}

TEST_CASE("supervisor: whether a child starts again depends on its kind and on how it ended") {
  family x;
  x.start(restart_strategy::one_for_one,
          {x.spec("permanent"), x.spec("transient", restart_kind::transient),
           x.spec("other", restart_kind::transient), x.spec("temporary", restart_kind::temporary)});
  x.news();
  x.tell("permanent", end_normally);
  CHECK(x.news() == journal{"-permanent", "+permanent"});
  x.tell("transient", fail);
  CHECK(x.news() == journal{"-transient", "+transient"});
  x.tell("transient", end_normally);
  CHECK(x.news() == journal{"-transient"});
  x.self->send_exit(x.child_of(x.top, "other"), caf::exit_reason::user_shutdown);
  x.deliver_all();
  CHECK(x.news() == journal{"-other"});
  x.tell("temporary", fail);
  CHECK(x.news() == journal{"-temporary"});
  CHECK(!x.end());
}

TEST_CASE("supervisor: a child that ended for good does not come back with the others, a temporary one does not either") {
  family x;
  x.start(restart_strategy::one_for_all,
          {x.spec("a"), x.spec("b", restart_kind::transient), x.spec("c", restart_kind::temporary),
           x.spec("d", restart_kind::transient)});
  x.tell("b", end_normally);
  x.news();
  x.tell("a", fail);
  CHECK(x.news() == journal{"-a", "-d", "-c", "+a", "+d"});
}

TEST_CASE("supervisor: gives up with a sentence after too many restarts in a period") {
  family x;
  x.options.restarts_max = 2;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b")});
  x.tell("a", fail);
  x.tell("b", fail);
  x.news();
  x.tell("a", fail);
  CHECK(x.news() == journal{"-a", "-b"});
  auto reason = x.end();
  REQUIRE(reason);
  CHECK(code_of(*reason) == errc::gave_up);
  CHECK(render(*reason)
        == "supervisor top gave up: 3 restarts within 10.0 s, 2 are allowed; the last was child a: a broke");
}

TEST_CASE("supervisor: restarts that are far apart do not add up") {
  family x;
  x.options.restarts_max = 2;
  x.start(restart_strategy::one_for_one, {x.spec("a")});
  for (int i = 0; i < 20; ++i) {
    x.tell("a", fail);
    x.advance(6s);
  }
  CHECK(!x.end());
}

TEST_CASE("supervisor: a child that cannot be started makes it give up and end the others") {
  family x;
  SUBCASE("by an exception") {
    x.start(restart_strategy::one_for_one, {x.spec("a"), {"b", [](auto*) -> caf::actor {
                                              throw std::runtime_error("no memory left");
                                            }}, x.spec("c")});
    CHECK(render(x.end().value()) == "supervisor top gave up: child b cannot be started: no memory left");
  }
  SUBCASE("by an invalid handle") {
    x.start(restart_strategy::one_for_one, {x.spec("a"), {"b", [](auto*) { return caf::actor{}; }}, x.spec("c")});
    CHECK(render(x.end().value())
          == "supervisor top gave up: child b cannot be started: its start function returned an invalid handle");
  }
  CHECK(x.news() == journal{"+a", "-a"});
}

TEST_CASE("supervisor: a child that fails to come back makes it give up") {
  family x;
  auto starts = 0;
  auto fragile = x.spec("fragile");
  fragile.start = [&, start = fragile.start](caf::event_based_actor* parent) {
    return ++starts == 1 ? start(parent) : caf::actor{};
  };
  x.start(restart_strategy::one_for_all, {x.spec("a"), fragile});
  x.tell("fragile", fail);
  CHECK(code_of(x.end().value()) == errc::gave_up);
  CHECK(x.news() == journal{"+a", "+fragile", "-fragile", "-a", "+a", "-a"});
}

TEST_CASE("supervisor: a supervisor that gives up is a failed child of its own supervisor") {
  family x;
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
  CHECK(x.news() == journal{"-a", "+a"});
  fail_inner(); // the inner one gives up, and is started again with all of its children
  CHECK(x.news() == journal{"-a", "-b", "+a", "+b"});
  fail_inner();
  CHECK(x.news() == journal{"-a", "+a"});
  fail_inner(); // the outer one gives up, too
  CHECK(x.news() == journal{"-a", "-b", "-z"});
  CHECK(render(x.end().value()).starts_with("supervisor top gave up: 2 restarts within 10.0 s, 1 is allowed; the last "
                                            "was child inner: supervisor inner gave up: 2 restarts"));
}

TEST_CASE("supervisor: a child that dies while others are being ended starts again once, with them") {
  family x;
  x.start(restart_strategy::one_for_all,
          {x.spec("a"), x.spec("b"), x.spec("c", restart_kind::permanent, true), x.spec("d")});
  x.news();
  auto c = x.child_of(x.top, "c");
  x.tell("d", fail);
  CHECK(x.news() == journal{"-d"}); // c is told to end and does not yet
  x.tell("a", fail);
  CHECK(x.news() == journal{"-a"});
  x.self->send(c, now_obey);
  x.deliver_all();
  CHECK(x.news() == journal{"-c", "-b", "+a", "+b", "+c", "+d"});
  auto all = x.ask<std::vector<caf::actor>>(x.top, caf::get_atom_v);
  for (const auto& handle : *all)
    CHECK(handle);
}

TEST_CASE("supervisor: a failure of an earlier child widens a restart that is under way") {
  family x;
  x.start(restart_strategy::rest_for_one,
          {x.spec("a"), x.spec("b"), x.spec("c"), x.spec("d", restart_kind::permanent, true)});
  x.news();
  auto d = x.child_of(x.top, "d");
  x.tell("c", fail);
  x.tell("a", fail);
  CHECK(x.news() == journal{"-c", "-a"});
  x.self->send(d, now_obey);
  x.deliver_all();
  CHECK(x.news() == journal{"-d", "-b", "+a", "+b", "+c", "+d"});
}

TEST_CASE("supervisor: an exit message during a restart ends it all the same") {
  family x;
  x.start(restart_strategy::one_for_all, {x.spec("a"), x.spec("b", restart_kind::permanent, true), x.spec("c")});
  x.news();
  auto b = x.child_of(x.top, "b");
  x.tell("c", fail);
  x.stop(x.top);
  CHECK(!x.end());
  x.self->send(b, now_obey);
  x.deliver_all();
  CHECK(x.news() == journal{"-c", "-b", "-a"});
  CHECK(x.end() == caf::error{caf::exit_reason::user_shutdown});
}

TEST_CASE("supervisor: a child that does not end in time is killed") {
  family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b", restart_kind::permanent, true)});
  x.news();
  x.stop(x.top);
  x.advance(5s - 1ns);
  CHECK(x.news() == journal{});
  x.advance(1ns);
  CHECK(x.news() == journal{"-b", "-a"});
  CHECK(x.end());
}

TEST_CASE("supervisor: killed, it takes its children with it") {
  family x;
  x.start(restart_strategy::one_for_one, {x.spec("a"), x.spec("b")});
  x.news();
  auto held = x.ask<std::vector<caf::actor>>(x.top, caf::get_atom_v); // not only by being unreachable
  x.self->send_exit(x.top, caf::exit_reason::kill);
  x.deliver_all();
  CHECK(x.news() == journal{"-b", "-a"});
}

TEST_CASE("supervisor: whatever fails in whatever order, all permanent children run in the end") {
  for (auto strategy : {restart_strategy::one_for_one, restart_strategy::one_for_all, restart_strategy::rest_for_one})
    for (uint64_t seed = 0; seed < 100; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random{seed};
      family x;
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
