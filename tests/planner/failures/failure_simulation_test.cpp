// Runs played failure by failure, beside the closed form.
#include "planner/failures/failure_simulation.hpp"

#include "messages/errc.hpp"
#include "planner/failures/goodput.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// Eight hosts of which one fails every job_mttf_s; small, so that long runs are played in no time.
failure_question small_job(double job_mttf_s, uint32_t copies = 8) {
  failure_question result{.gpus = 64, .copies = copies};
  result.gpu_mttf_s = job_mttf_s * result.gpus;
  return result;
}

failure_history played(const failure_question& asked, recovery how, double interval_s, uint64_t seed,
                       double life_shape = 1) {
  auto result = simulate_failures(asked, how, interval_s, seed, life_shape);
  REQUIRE(result);
  CHECK(result->sum_s() == doctest::Approx(asked.run_s).epsilon(1e-9));
  return *result;
}

/// Plays some runs of that number of failures each, and compares the means with the closed form.
void compare(failure_question asked, recovery how, uint32_t runs, double failures) {
  const auto expected = outcome_of(asked, how);
  asked.run_s = failures / expected.interruptions_a_day * 86400;
  const auto found = play_runs(asked, how, expected.interval_s, runs);
  REQUIRE(found);
  const std::string policy{name_of(how)};
  CAPTURE(policy);
  CAPTURE(asked.gpus);
  CAPTURE(asked.copies);
  CAPTURE(asked.spares);
  CAPTURE(job_mttf_s(asked));
  CAPTURE(asked.repair_s);
  CHECK(found->effective.mean == doctest::Approx(expected.effective).epsilon(0.01));
  CHECK(found->goodput.mean == doctest::Approx(expected.goodput).epsilon(0.01));
  CHECK(found->interruptions.mean == doctest::Approx(failures).epsilon(0.01));
  CHECK(std::abs(found->waiting.mean - expected.waiting) < 0.01);
  CHECK(std::abs(found->smaller.mean - expected.smaller) < 0.01);
}

} // namespace

TEST_CASE("failure simulation: restarts agree with the closed form within 1 %, however rare the checkpoints") {
  for (auto job_mttf : {600.0, 50'000.0})
    for (auto write : {0.0, 300.0})
      for (auto interval_by_mttf : {0.05, 1.0, 2.0}) {
        auto asked = small_job(job_mttf);
        asked.checkpoint_write_s = write;
        asked.interval_s = interval_by_mttf * job_mttf;
        CAPTURE(write);
        CAPTURE(interval_by_mttf);
        // A segment is rarely whole where it is longer than the time to failure: that takes more of them.
        compare(asked, recovery::restart, 4, 20'000 * std::exp((*asked.interval_s + write) / job_mttf));
      }
}

TEST_CASE("failure simulation: jobs that wait for repairs agree with the closed form within 1 %") {
  for (auto spares : {0, 2, 8})
    for (auto repair_by_mttf : {0.5, 5.0}) {
      auto asked = small_job(5000);
      asked.spares = static_cast<uint32_t>(spares);
      asked.repair_s = repair_by_mttf * 5000;
      compare(asked, recovery::wait, 4, 40'000);
    }
}

TEST_CASE("failure simulation: jobs that go on with fewer copies agree with the closed form within 1 %") {
  for (auto how : {recovery::smaller, recovery::shrink})
    for (auto copies : {2, 8})
      for (auto spares : {0, 1}) {
        auto asked = small_job(20'000, static_cast<uint32_t>(copies));
        asked.spares = static_cast<uint32_t>(spares);
        asked.repair_s = copies == 2 ? 86'400 : 20'000;
        compare(asked, how, 4, 30'000);
        asked.sharded = true;
        if (how == recovery::shrink)
          compare(asked, how, 4, 30'000);
      }
}

TEST_CASE("failure simulation: a large job agrees with the closed form within 1 %") {
  failure_question asked{.gpus = 4096, .copies = 64, .spares = 4, .gpu_mttf_s = 1.8e8, .step_s = 6};
  for (auto how : all_recoveries)
    compare(asked, how, 2, 10'000);
}

TEST_CASE("failure simulation: a seed has one history, and another one another") {
  const auto asked = small_job(20'000);
  for (auto how : all_recoveries) {
    const auto first = played(asked, how, 900, 7), again = played(asked, how, 900, 7),
               other = played(asked, how, 900, 8);
    CHECK(first.interruptions == again.interruptions);
    CHECK(first.kept_s == again.kept_s);
    CHECK(first.work_s == again.work_s);
    CHECK(first.kept_s != other.kept_s);
  }
}

TEST_CASE("failure simulation: runs are summarised by mean, least and most") {
  const auto asked = small_job(20'000);
  const auto runs = play_runs(asked, recovery::smaller, 900, 3);
  REQUIRE(runs);
  double sum = 0, least = 1, most = 0;
  for (uint64_t seed : {1, 2, 3}) {
    const auto goodput = played(asked, recovery::smaller, 900, seed).work_s / asked.run_s;
    sum += goodput;
    least = std::min(least, goodput);
    most = std::max(most, goodput);
  }
  CHECK(runs->goodput.mean == doctest::Approx(sum / 3).epsilon(1e-12));
  CHECK(runs->goodput.least == least);
  CHECK(runs->goodput.most == most);
  CHECK(runs->interruptions.least < runs->interruptions.most);
}

TEST_CASE("failure simulation: a run without a failure is training and checkpoints") {
  auto asked = small_job(1e12);
  asked.run_s = 10 * 930.0;
  const auto x = played(asked, recovery::restart, 900, 1);
  CHECK(x.interruptions == 0);
  CHECK(x.kept_s == doctest::Approx(9000));
  CHECK(x.work_s == doctest::Approx(9000));
  CHECK(x.writing_s == doctest::Approx(300));
  CHECK(x.lost_s == 0);
  CHECK(x.stopped_s == 0);
}

TEST_CASE("failure simulation: who shrinks goes back only when the last copy is lost") {
  auto asked = small_job(20'000);
  asked.run_s = 5000 * 20'000.0;
  asked.repair_s = 7200;
  const auto eight = played(asked, recovery::shrink, 900, 3);
  CHECK(eight.interruptions > 4000);
  CHECK(eight.rollbacks == 0);
  // Each loses half a step: 5 s of 10, and somewhat longer with fewer copies.
  CHECK(eight.lost_s / static_cast<double>(eight.interruptions) == doctest::Approx(5.1).epsilon(0.05));
  const auto restarted = played(asked, recovery::smaller, 900, 3);
  CHECK(restarted.rollbacks == restarted.interruptions);
  asked.copies = 1;
  const auto one = played(asked, recovery::shrink, 900, 3);
  CHECK(one.rollbacks == one.interruptions);
  CHECK(one.waits == one.interruptions);
}

TEST_CASE("failure simulation: hosts live as long in the mean whatever the shape, and at first as it says") {
  auto asked = small_job(20'000);
  const auto exponential = played(asked, recovery::restart, 900, 5);
  CHECK(played(asked, recovery::restart, 900, 5, 1.0).kept_s == exponential.kept_s);
  for (auto shape : {0.7, 3.0}) {
    CAPTURE(shape);
    asked.run_s = 20'000 * 20'000.0; // 2,500 lives of each
    const auto x = played(asked, recovery::restart, 900, 5, shape);
    CHECK(static_cast<double>(x.interruptions) == doctest::Approx(20'000).epsilon(0.02));
  }
  asked.run_s = 16'000; // a tenth of a host's life, and 0.8 failures if they came at any age
  double young = 0, infant = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    young += static_cast<double>(played(asked, recovery::restart, 900, seed, 3.0).interruptions) / 500;
    infant += static_cast<double>(played(asked, recovery::restart, 900, seed, 0.7).interruptions) / 500;
  }
  CHECK(young < 0.05);                                       // 8 (1 - e^-(0.1 * 0.893)^3) = 0.006
  CHECK(infant == doctest::Approx(8 * 0.2205).epsilon(0.1)); // about 8 (1 - e^-(0.1 * 1.266)^0.7), and the second ones
}

TEST_CASE("failure simulation: what would take too long, or is no run, is refused") {
  auto asked = small_job(20'000);
  auto why = [&](double interval_s, double shape = 1) {
    auto result = simulate_failures(asked, recovery::restart, interval_s, 1, shape);
    REQUIRE(!result);
    CHECK(code_of(result.error()) == errc::invalid_argument);
    return render(result.error());
  };
  CHECK(why(0) == "checkpoints every 0 s: it must be more than 0");
  CHECK(why(900, 0) == "a Weibull distribution of shape 0: it must be 0.1 to 10");
  CHECK(why(1e-6)
        == "2.6e+12 failures and checkpoints on 8 hosts would take too long to play: take shorter runs, "
           "or fewer");
  asked.copies = 3;
  CHECK(why(900) == "64 GPUs do not divide among 3 data-parallel copies of a model");
}
