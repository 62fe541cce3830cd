// What failures leave of a job, in closed form.
#include "planner/failures/goodput.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// 128 hosts of 8, of which one fails every five hours.
constexpr failure_question thousand_gpus{.gpus = 1024, .copies = 16, .gpu_mttf_s = 1024 * 18'000.0};

/// Erlang's loss formula, by its recursion: the part of time in which all servers are busy.
double taken_by_erlang(uint32_t servers, double load) {
  double result = 1;
  for (uint32_t i = 1; i <= servers; ++i)
    result = load * result / (i + load * result);
  return result;
}

std::string why_refused(failure_question asked) {
  const auto problem = check(asked);
  REQUIRE(problem);
  CHECK(code_of(problem) == errc::invalid_argument);
  return render(problem);
}

} // namespace

TEST_CASE("goodput: with a spare always there it is Daly's, at the best interval") {
  const auto x = outcome_of(thousand_gpus, recovery::restart);
  CHECK(x.interval_s == best_interval(30, 18'000));
  CHECK(x.goodput == doctest::Approx(kept_fraction(x.interval_s, 30, 300, 18'000)).epsilon(1e-12));
  CHECK(x.effective == x.goodput);
  CHECK(x.interruptions_a_day == doctest::Approx(4.8));
  CHECK(x.waiting == 0);
  auto told = thousand_gpus;
  told.interval_s = 5000;
  CHECK(outcome_of(told, recovery::restart).goodput == doctest::Approx(kept_fraction(5000, 30, 300, 18'000)));
}

TEST_CASE("goodput: a job that waits for repairs does so as Erlang's loss formula says") {
  auto asked = thousand_gpus;
  const auto load = asked.repair_s / 18'000;
  const auto undelayed = outcome_of(asked, recovery::restart).goodput;
  for (uint32_t spares : {0, 1, 4, 10, 40}) {
    asked.spares = spares;
    const auto x = outcome_of(asked, recovery::wait);
    CHECK(x.waiting == doctest::Approx(taken_by_erlang(spares + 1, load)).epsilon(1e-9));
    CHECK(x.goodput == doctest::Approx((1 - x.waiting) * undelayed).epsilon(1e-12));
    CHECK(x.interruptions_a_day == doctest::Approx(4.8 * (1 - x.waiting)));
  }
  CHECK(outcome_of(asked, recovery::wait).goodput == doctest::Approx(undelayed));
}

TEST_CASE("goodput: hosts of broken copies make up whole ones, and no training runs on less than one") {
  const auto asked = failure_question{.gpus = 1024, .copies = 16, .spares = 2}; // 8 hosts each
  CHECK(copies_with(asked, recovery::restart, 500) == 16);
  CHECK(copies_with(asked, recovery::wait, 2) == 16);
  CHECK(copies_with(asked, recovery::wait, 3) == 0);
  CHECK(copies_with(asked, recovery::smaller, 2) == 16);
  CHECK(copies_with(asked, recovery::smaller, 3) == 15);
  CHECK(copies_with(asked, recovery::smaller, 10) == 15);
  CHECK(copies_with(asked, recovery::shrink, 11) == 14);
  CHECK(copies_with(asked, recovery::smaller, 122) == 1);
  CHECK(copies_with(asked, recovery::smaller, 123) == 0);
  CHECK(copies_with(asked, recovery::smaller, 1000) == 0);
  CHECK(hosts_in_use(asked, 15) == 120);
  const auto many = failure_question{.gpus = 16, .copies = 16}; // 8 copies on each of two hosts
  CHECK(copies_with(many, recovery::shrink, 1) == 8);
  CHECK(hosts_in_use(many, 8) == 1);
  CHECK(survives(many, 16));
  CHECK(!survives(many, 8));
  CHECK(!survives(asked, 1));
}

TEST_CASE("goodput: who goes on with fewer keeps more than who waits, and who need not go back keeps the most") {
  for (uint32_t copies : {2, 8, 128})
    for (double job_mttf : {3600.0, 18'000.0, 200'000.0})
      for (uint32_t spares : {0, 2, 20}) {
        auto asked = thousand_gpus;
        asked.copies = copies;
        asked.spares = spares;
        asked.gpu_mttf_s = job_mttf * asked.gpus;
        CAPTURE(copies);
        CAPTURE(job_mttf);
        CAPTURE(spares);
        const auto found = answer_of(asked).outcomes;
        CHECK((found[1].goodput < found[2].goodput || found[1].waiting < 1e-9));
        CHECK(found[2].goodput < found[3].goodput);
        for (auto& x : found) {
          CHECK(x.goodput <= x.effective * (1 + 1e-12));
          CHECK(x.effective + x.waiting < 1);
        }
      }
}

TEST_CASE("goodput: a model that is there once is lost with any host, so a shrink is a restart") {
  auto asked = thousand_gpus;
  asked.copies = 1;
  asked.spares = 3;
  const auto found = answer_of(asked).outcomes;
  CHECK(found[2].goodput == doctest::Approx(found[1].goodput));
  CHECK(found[3].goodput == doctest::Approx(found[1].goodput));
  CHECK(found[3].interval_s == doctest::Approx(found[1].interval_s));
}

TEST_CASE(
  "goodput: where copies share a part of the state, a shrink goes back with every failure, and only joins quicker") {
  auto asked = thousand_gpus;
  const auto whole = answer_of(asked).outcomes;
  asked.sharded = true;
  const auto found = answer_of(asked).outcomes;
  CHECK(found[2].goodput == whole[2].goodput);
  CHECK(found[3].goodput < whole[3].goodput - 0.05);
  CHECK(found[3].goodput > found[2].goodput);
  CHECK(found[3].interval_s == doctest::Approx(found[2].interval_s).epsilon(0.1)); // fewer hosts work, on average
}

TEST_CASE("goodput: a shrink writes checkpoints as often as all copies are lost, which is next to never for many") {
  auto asked = thousand_gpus;
  asked.copies = 2;
  const auto two = outcome_of(asked, recovery::shrink);
  asked.copies = 128;
  const auto many = outcome_of(asked, recovery::shrink);
  CHECK(two.interval_s < 86400);
  CHECK(many.interval_s > 1e12);
  asked.interval_s = 3000; // told, it is kept to
  CHECK(outcome_of(asked, recovery::shrink).goodput == doctest::Approx(many.goodput * 3000 / 3030).epsilon(1e-9));
  // What is left is detections, joins, half a step, and the hosts that are missing.
  const auto rate = 1 / 18'000.0, missing = asked.repair_s / 18'000.0 / 128;
  const auto stops = rate * (asked.detection_s + asked.join_s + asked.step_s / 2);
  CHECK(many.goodput == doctest::Approx((1 - missing) * (1 - stops)).epsilon(2e-3));
}

TEST_CASE("goodput: what is no job is refused with what one has") {
  CHECK(!check(failure_question{}));
  CHECK(why_refused({.gpus = 0}) == "a job needs at least one GPU, and a host, too");
  CHECK(why_refused({.gpus = 10, .copies = 4}) == "10 GPUs do not divide among 4 data-parallel copies of a model");
  CHECK(why_refused({.gpu_mttf_s = 0}) == "a GPU's mean time to failure is 0 s: it must be more than 0, and finite");
  CHECK(why_refused({.join_s = -1}) == "the joining of a host is -1 s: it must be 0 or more, and finite");
  CHECK(why_refused({.restart_s = 1, .detection_s = 2})
        == "a restart of 1 s has the detection of the failure in it, which takes 2 s: it must be as long at least");
  CHECK(why_refused({.run_s = INFINITY}).starts_with("the run is inf s"));
  CHECK(why_refused({.interval_s = 0}).starts_with("the interval of checkpoints is 0 s"));
}

TEST_CASE(
  "goodput: where restarts last longer than repairs it is still no more than the time in which there is progress") {
  for (auto copies : {1u, 8u, 64u})
    for (auto restart_s : {3600.0, 8'640'000.0}) {
      auto asked = thousand_gpus;
      asked.copies = copies;
      asked.restart_s = restart_s;
      for (auto& x : answer_of(asked).outcomes) {
        CAPTURE(copies);
        CHECK(x.goodput >= 0);
        CHECK(x.goodput <= x.effective * (1 + 1e-12));
      }
    }
}
