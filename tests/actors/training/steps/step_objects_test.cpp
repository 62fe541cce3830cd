// The objects that `step_change` consists of, and `patience`.
#include "actors/training/steps/attempt_teardown.hpp"
#include "actors/training/steps/patience.hpp"
#include "actors/training/steps/run_progress.hpp"
#include "messages/errc.hpp"
#include "tests/runtime/invariants/broken_invariant.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;
using namespace std::chrono_literals;

namespace {

using phase = run_progress::phase;

void step_object_refuses(const std::string& sentence, const std::function<void()>& what) {
  const auto log = log_of_abort(what);
  CHECK_MESSAGE(contains(log, "an invariant is broken: " + sentence), log);
}

} // namespace

TEST_CASE("run progress: counts attempts of a step and of the run, through a repeated step and to the end") {
  run_progress x{0, 2};
  x.enter(phase::stepping);
  CHECK(x.try_again(2));
  CHECK(x.start_attempt() == 1);
  CHECK(x.is_current(1));
  x.enter(phase::recovering);
  CHECK(!x.is_current(1));
  CHECK(x.is_latest(1));
  x.enter(phase::stepping);
  CHECK(x.try_again(2));
  CHECK(!x.try_again(2));
  x.step_committed();
  CHECK(x.step() == 1);
  CHECK(x.attempts() == 0);
  x.go_back(0);
  x.step_committed();
  x.step_committed();
  CHECK(x.all_steps_are_done());
  x.enter(phase::finishing);
  x.check();
  x.enter(phase::over);
  CHECK(x.is_over());
  CHECK(x.state_text() == "step 2 of 2 is over, attempt 1 (0 of this step)");
}

TEST_CASE("run progress: refuses every transition that is not in the drawing") {
  const std::string sentence = "a phase follows one that it may follow";
  step_object_refuses(sentence, [] { run_progress{0, 1}.enter(phase::recovering); });
  step_object_refuses(sentence, [] { run_progress{1, 1}.enter(phase::finishing); });
  step_object_refuses(sentence, [] {
    run_progress x{0, 1};
    x.enter(phase::over);
    x.enter(phase::stepping);
  });
  step_object_refuses("a run finishes after its last step", [] {
    run_progress x{0, 1};
    x.enter(phase::stepping);
    x.enter(phase::finishing);
  });
  step_object_refuses("a snapshot is of a step that was committed", [] { run_progress{0, 1}.go_back(1); });
}

TEST_CASE("attempt teardown: is complete when ranks, coordinator and communicators have answered") {
  attempt_teardown x;
  x.attempt_started();
  x.start({device_id{1}});
  x.close_communicators();
  CHECK(x.awaited() == "the rank of device 0x1 has not given up its step");
  CHECK(x.gave_up(device_id{1}));
  CHECK(!x.gave_up(device_id{1}));
  CHECK(!x.awaited());
  x.coordinator_answered();
  CHECK(!x.is_complete());
  x.communicators_closed();
  CHECK(x.is_complete());
  CHECK(!x.communicators_are_open());
  x.start_handing_over();
  CHECK(x.awaited() == "the parts of the model of ranks that leave have not arrived");
  CHECK(x.end_handing_over());
  CHECK(!x.end_handing_over());
}

TEST_CASE("attempt teardown: refuses answers that were not awaited") {
  step_object_refuses("only awaited answers are counted", [] { attempt_teardown{}.coordinator_answered(); });
  step_object_refuses("communicators are closed once", [] { attempt_teardown{}.close_communicators(); });
  step_object_refuses("an attempt is given up once", [] {
    attempt_teardown x;
    x.start({device_id{1}});
    x.start({device_id{1}});
  });
}

TEST_CASE("patience: gives a step up that stalls, and the run when it stalls for the third time with the same ranks") {
  patience x{60s, {}};
  const std::vector<rank_roster::member> all{{.device = device_id{1}}, {.device = device_id{2}}};
  const std::vector<rank_roster::member> others{{.device = device_id{1}}};
  CHECK(code_of(x.stalled(3, all, std::nullopt)) == errc::timed_out);
  CHECK(code_of(x.stalled(3, all, std::nullopt)) == errc::timed_out);
  CHECK(code_of(x.stalled(3, others, std::nullopt)) == errc::timed_out);
  CHECK(code_of(x.stalled(3, all, std::nullopt)) == errc::timed_out);
  CHECK(code_of(x.stalled(3, all, std::nullopt)) == errc::timed_out);
  const auto last = x.stalled(3, all, "rank 0 waits for rank 1");
  CHECK(code_of(last) == errc::gave_up);
  CHECK(contains(render(last), "step 3 has stalled 3 times with the same ranks: nothing has happened for 60 s, which "
                               "training.patience allows: rank 0 waits for rank 1"));
}

TEST_CASE("patience: warns after 5 s of silence, then after twice as long and 5 s more each time") {
  const auto start = patience::time_point{} + 1h;
  patience x{60s, start};
  CHECK(!x.warning(3, "rank 1 is late", false, start + 4s));
  const auto first = x.warning(3, "rank 1 is late", false, start + 5s);
  REQUIRE(first);
  CHECK(*first
        == "step 3 has been stalled for 5 s: rank 1 is late; the step is given up if a rank is lost, or after "
           "60 s");
  CHECK(!x.warning(3, "rank 1 is late", false, start + 14s));
  x.asked(1, start + 10s);
  const auto second = x.warning(3, "rank 1 is late", true, start + 15s);
  REQUIRE(second);
  CHECK(*second
        == "step 3 has been stalled for 15 s: the coordinator does not answer; a late rank is left out if its "
           "device is lost, or after 60 s");
}
