// What stands for a plan in its simulation, and what confirming may take.
#include "messages/errc.hpp"
#include "planner/search/plan_outcome.hpp"

#include "planner/costs/transformer_costs.hpp"
#include "planner/models/known_models.hpp"
#include "tests/support/text_search.hpp"
#include "tests/training/language/strategy_outcome.hpp"
#include "tools/planning/plan_report.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

plan_question question(const char* model_name, uint32_t devices, uint32_t batch,
                       std::initializer_list<const char*> only = {}) {
  plan_question x{*model_of(model_name), *system_of("h100-80g"), devices, batch};
  x.system.memory_bytes = 1e15; // all fit
  for (auto* each : only)
    x.filter.only.emplace_back(each);
  return x;
}

/// The best plan of the question with these sides.
parallel_setting best_with(plan_question asked, uint32_t tensor, uint32_t data, uint32_t pipeline) {
  asked.filter.tensor = {tensor, tensor};
  asked.filter.data = {data, data};
  asked.filter.pipeline = {pipeline, pipeline};
  asked.filter.context = {1, 1};
  asked.filter.micro_batches = {1};
  const auto found = plan_transformer(asked, 1);
  REQUIRE(!found.best.empty());
  return found.best.front().how;
}

/// All ranks of the plan, none standing for others.
training_outcome simulated_by_all(const plan_question& asked, const parallel_setting& how) {
  const model trained{
    places_of(asked.trained, how), how.global_batch, how.micro_batch, how.chunks, how.shape.tensor, how.shape.data,
    how.sequence_parallel,         how.zero};
  return outcome_of(name_of(how.schedule), trained, how.shape.size(),
                    *transformer_costs(asked.trained, asked.system, how));
}

transformer_plans ten_best(const plan_question& asked) {
  return plan_transformer(asked, 10);
}

const std::function<bool(double)> never_stops = [](double) { return true; };

} // namespace

TEST_CASE("plan confirm: two data-parallel ranks stand for all, also where ZeRO 2 and 3 share, and in DualPipe") {
  const std::initializer_list<std::initializer_list<const char*>> all{
    {"1f1b", "zero1"},  {"1f1b", "zero2"}, {"interleaved", "zero2"}, {"1f1b", "zero3"},
    {"gpipe", "zero3"}, {"zb-v", "zero2"}, {"dualpipe", "zero1"},    {"dualpipe", "zero2"}};
  for (auto only : all)
    for (auto* name : {"llama3-8b", "qwen3-30b-a3b"}) {
      const auto asked = question(name, 32, 64, only);
      const auto how = best_with(asked, 1, 8, 4);
      const plan_simulation run{asked, how};
      CAPTURE(name);
      CAPTURE(name_of(how.schedule));
      CAPTURE(how.zero);
      CHECK(run.shape().data == 2);
      const auto few = run.simulate_all({});
      REQUIRE(few);
      const auto every = simulated_by_all(asked, how);
      CHECK(few->seconds == doctest::Approx(every.end).epsilon(1e-9));
      CHECK(few->memory_bytes
            == doctest::Approx(static_cast<double>(every.ranks[every.peak_rank].peak_memory)).epsilon(1e-6));
    }
}

TEST_CASE("plan confirm: a step is told from two shorter ones, for each schedule and way of sharding") {
  for (auto* only : {"1f1b", "interleaved", "gpipe", "zb-h1", "zb-h2", "zb-v", "dualpipe"})
    for (uint32_t pipeline : {2u, 4u}) {
      const auto asked = question("llama3-8b", 2 * pipeline, 128, {only, "zero1"});
      const auto how = best_with(asked, 1, 2, pipeline);
      const plan_simulation run{asked, how};
      CAPTURE(only);
      CAPTURE(pipeline);
      const auto steady = run.steady();
      REQUIRE(steady);
      CHECK(run.operations(*steady) < run.operations());
      const auto shorter = run.simulate_steady(*steady, {}), whole = run.simulate_all({});
      REQUIRE(shorter);
      REQUIRE(whole);
      CHECK(shorter->micro_batches == steady->longer);
      CHECK(whole->micro_batches == how.micro_batches());
      CHECK(shorter->operations < whole->operations);
      CHECK(shorter->seconds == doctest::Approx(whole->seconds).epsilon(1e-6));
      CHECK(shorter->memory_bytes == doctest::Approx(whole->memory_bytes).epsilon(1e-6));
    }
  for (auto* only : {"fsdp", "hsdp", "zero2", "zero3"}) {
    const auto asked = question("llama3-8b", 16, 1024, {only});
    const auto how = best_with(asked, 1, 16, 1);
    const plan_simulation run{asked, how};
    CAPTURE(only);
    const auto steady = run.steady();
    REQUIRE(steady);
    const auto shorter = run.simulate_steady(*steady, {}), whole = run.simulate_all({});
    REQUIRE(shorter);
    REQUIRE(whole);
    CHECK(shorter->seconds == doctest::Approx(whole->seconds).epsilon(1e-6));
    CHECK(shorter->memory_bytes == doctest::Approx(whole->memory_bytes).epsilon(1e-6));
  }
  const auto asked = question("llama3-8b", 8, 16, {"1f1b"});
  CHECK(!plan_simulation{asked, best_with(asked, 1, 2, 4)}
           .steady()); // eight micro-batches are no longer than what it needs
}

TEST_CASE("plan confirm: all that is simulated stays within the operations, and what is left out says why") {
  auto asked = question("llama3-8b", 64, 2048, {"1f1b"});
  asked.filter.pipeline = {4, 4};
  asked.filter.micro_batches = {1};
  const auto found = ten_best(asked);
  for (uint64_t operations : {uint64_t{0}, uint64_t{200'000}, uint64_t{1'000'000}, uint64_t{30'000'000}}) {
    CAPTURE(operations);
    const auto all = confirm_plans(asked, found, never_stops, {.operations = operations});
    REQUIRE(all.size() == 10);
    uint64_t done = 0;
    for (auto& x : all) {
      CHECK(x.simulated.has_value() == !x.problem);
      if (x.simulated)
        done += x.simulated->operations;
      else
        CHECK(render(x.problem) == "too many operations");
    }
    CHECK(done <= operations);
    const auto counts = counts_of(all);
    CHECK(counts.whole + counts.by_shorter_steps + counts.closed_form == 10);
    if (operations == 0)
      CHECK(counts.closed_form == 10);
    if (operations == 1'000'000)
      CHECK(counts.by_shorter_steps > 0);
    if (operations == 30'000'000)
      CHECK(counts.whole > 0);
  }
}

TEST_CASE("plan confirm: no time left, and Ctrl-C, are said of each plan, and on the page") {
  plan_outcome x;
  x.asked = question("llama3-8b", 64, 2048, {"1f1b"});
  x.asked.filter.pipeline = {4, 4};
  x.asked.filter.micro_batches = {1};
  x.found = ten_best(x.asked);
  x.best = confirm_plans(x.asked, x.found, never_stops, {.time = std::chrono::milliseconds{0}});
  REQUIRE(x.best.size() == 10);
  for (auto& each : x.best)
    CHECK(render(each.problem) == "no time left");
  CHECK(contains(report_of(x), "confirmed by simulation: 10 not: in closed form alone, for the reason below"));
  CHECK(contains(json_of(x), R"("confirmed":{"by_whole_step":0,"by_shorter_steps":0,"in_closed_form":10})"));
  x.best = confirm_plans(x.asked, x.found, [](double) { return false; });
  for (auto& each : x.best)
    CHECK(render(each.problem) == "interrupted");
  x.best = confirm_plans(x.asked, x.found, never_stops, {.operations = 1'000'000});
  CHECK(contains(report_of(x), "(*) by two shorter steps"));
  CHECK(contains(json_of(x), R"("simulated_micro_batches":)"));
}

TEST_CASE("plan confirm: thousands of GPUs under ZeRO 2 are some hundred thousand operations, not millions a rank") {
  auto asked = question("llama3-70b", 2048, 2048, {"interleaved", "zero2"});
  asked.system = *system_of("h100-80g");
  const auto all = confirm_plans(asked, ten_best(asked), never_stops);
  uint64_t done = 0, confirmed = 0;
  for (auto& x : all)
    if (x.simulated) {
      done += x.simulated->operations;
      ++confirmed;
    }
  CHECK(confirmed >= 5);
  CHECK(done <= confirmation_limits{}.operations);
}
