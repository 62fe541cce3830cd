#pragma once

#include "tests/support/simulated_cluster.hpp"

namespace ringmaster::test {

/// The state of an actor that lives in this process and does not run while the test looks.
template <class State, class Interface>
State& state_of(const Interface& handle) {
  using pointer = typename Interface::template stateful_pointer<State>;
  auto self = dynamic_cast<pointer>(caf::actor_cast<caf::abstract_actor*>(handle));
  REQUIRE(self != nullptr);
  return self->state;
}

/// The device with this id; they join in an order drawn from the seed.
inline device_actor device_of(simulated_cluster& cluster, uint64_t id) {
  for (auto& device : cluster.devices)
    if (state_of<device_state>(device).id.value == id)
      return device;
  FAIL("there is no device ", id);
  return {};
}

inline communicator_actor communicator_of(simulated_cluster& cluster, uint64_t id = 1) {
  auto known = state_of<coordinator_state>(cluster.host).communicators.find(communicator_id{id});
  REQUIRE(known != nullptr);
  return caf::actor_cast<communicator_actor>(known->handle);
}

/// One that never answers: what it is sent stays in its mailbox.
inline caf::actor deaf(simulated_cluster& cluster) {
  auto skip_all = [](caf::event_based_actor* self, int) -> caf::behavior {
    self->set_default_handler(caf::skip);
    return {[](atom::flush) {}};
  };
  return cluster.sys.spawn(skip_all, 0); // without arguments CAF's header forms a reference to none
}

} // namespace ringmaster::test
