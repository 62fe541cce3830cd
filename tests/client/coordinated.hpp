#pragma once

#include "actors/configuration/configuration.hpp"
#include "messages/interfaces.hpp"

#include <caf/all.hpp>

#include <memory>

namespace ringmaster::test {

/// An actor system of two threads in which a double stands for the coordinator, and answers from a script. A test
/// changes the script only while nothing is asked.
template <class Script>
struct coordinated {
  using double_function = caf::behavior (*)(caf::event_based_actor*, std::shared_ptr<Script>);

  explicit coordinated(double_function answers)
    : coordinator{caf::actor_cast<coordinator_actor>(system.spawn(answers, said))} {}
  ~coordinated() { caf::anon_send_exit(coordinator, caf::exit_reason::user_shutdown); }

  struct configuration : caf::actor_system_config {
    configuration() {
      set("scheduler.max-threads", 2);
      add_messages(*this);
    }
  };

  configuration settings;
  caf::actor_system system{settings};
  std::shared_ptr<Script> said = std::make_shared<Script>();
  coordinator_actor coordinator;
};

} // namespace ringmaster::test
