#include "tests/support/deterministic_system.hpp"

#include "actors/configuration/configuration.hpp"

namespace ringmaster::test {

deterministic_system::config::config() {
  set("scheduler.policy", caf::atom("testing"));
  add_messages(*this);
}

deterministic_system::deterministic_system()
  : sys(cfg), self(sys, true), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(sys.scheduler())) {}

deterministic_system::~deterministic_system() {
  deliver_all();
}

size_t deterministic_system::deliver_all() {
  size_t delivered = 0;
  while (scheduler.try_run_once())
    ++delivered;
  return delivered;
}

size_t deterministic_system::advance(caf::timespan interval) {
  scheduler.advance_time(interval);
  return deliver_all();
}

} // namespace ringmaster::test
