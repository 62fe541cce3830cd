// An actor with a thread of its own has ended when all that monitor it have been notified.
#include "actors/scheduling/awaited_end.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <doctest/doctest.h>

#include <future>

using namespace ringmaster;

namespace {

/// Is notified of the end, and continues only when it may.
class slow_to_hear : public caf::attachable {
public:
  slow_to_hear(std::promise<void>& hears, std::shared_future<void> may_go_on)
    : hears_(hears), may_go_on_(std::move(may_go_on)) {}

  void actor_exited(const caf::error&, caf::execution_unit*) override {
    hears_.set_value();
    may_go_on_.wait();
  }

private:
  std::promise<void>& hears_;
  std::shared_future<void> may_go_on_;
};

} // namespace

TEST_CASE("awaited end: the system waits for an actor until all that monitor it have been notified") {
  caf::actor_system_config config;
  caf::actor_system system{config};
  const auto before = system.registry().running();
  auto idle = [](caf::event_based_actor*, int) { return caf::behavior{[](int) {}}; };
  auto x = system.spawn<caf::detached>(idle, 0);
  const auto its = caf::actor_cast<caf::strong_actor_ptr>(x);
  awaited_end::of(its);
  std::promise<void> hears, may_go_on;
  its->get()->attach(caf::attachable_ptr{new slow_to_hear{hears, may_go_on.get_future().share()}});
  caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
  hears.get_future().wait();
  CHECK(system.registry().running() == before + 1); // CAF counts it no more
  may_go_on.set_value();
  caf::scoped_actor {
    system
    } -> wait_for(x);
  system.registry().await_running_count_equal(0);
  CHECK(system.registry().running() == 0);
}
