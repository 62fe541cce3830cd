#include "actors/hosts/journal.hpp"

#include "runtime/invariants/ensure.hpp"
#include "tests/runtime/invariants/broken_invariant.hpp"
#include "tests/support/records.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("flight recorder: keeps the latest records, the oldest first") {
  flight_recorder recorder;
  CHECK(recorder.text() == "");
  for (uint64_t sequence = 1; sequence <= flight_recorder::records_max + 2; ++sequence)
    recorder.note(operation_ended(7, sequence, gpu_sim::SUCCESS));
  const auto text = recorder.text();
  CHECK(occurrences(text, "\n") == flight_recorder::records_max);
  CHECK(text.starts_with("the journal's last records:\n"));
  CHECK_FALSE(contains(text, "operation 2 "));
  CHECK(text.find("operation 3 ") < text.find("operation 4 "));
  CHECK(contains(text, "operation 34 "));
}

TEST_CASE("flight recorder: a process that aborts reports what its journal recorded last") {
  const auto log = log_of_abort([] {
    flight_recorder::instance().note(operation_ended(7, 3, gpu_sim::FAILED));
    ensure(false, "a test");
  });
  CHECK_MESSAGE(contains(log, "the journal's last records:\n"), log);
  CHECK_MESSAGE(contains(log, "communicator 7"), log);
}
