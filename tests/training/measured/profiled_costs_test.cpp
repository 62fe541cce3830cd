// What steps take, from steps that were measured.
#include "training/measured/profiled_costs.hpp"

#include "messages/errc.hpp"
#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// A machine of which everything is known: seconds.
class known_machine : public cost_model {
public:
  std::string_view name() const override { return "known"; }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return true; }
  uint64_t memory_of(const value_tag&) const override { return 1; }
  double mfu_percent(const model&, uint32_t, double) const override { return -1; }
  double time_of(const pending& x, uint32_t) const override {
    const auto samples = static_cast<double>(x.argument.samples.first().count());
    switch (x.what) {
      case op::forward: return samples * (x.argument.layer + 1);
      case op::backward: return samples * (x.argument.layer + 2) * 2;
      case op::loss: return 0.5;
      case op::update: return 3;
      case op::send: return 0;
      default: return is_communication(x.what) ? 1.5 : 0;
    }
  }
};

/// One that holds up now this rank and now that one.
class stuttering_machine final : public known_machine {
public:
  double time_of(const pending& x, uint32_t world_size) const override {
    const bool is_held_up = (x.rank + x.argument.samples.first().begin / 2) % 2 == 0;
    return known_machine::time_of(x, world_size) * (is_held_up && x.what <= op::backward ? 3 : 1);
  }
};

/// The events as ranks measure them: who comes to a communication waits within it.
std::vector<event> as_measured(std::vector<event> all) {
  std::ranges::stable_sort(all, {}, [](auto& x) { return std::pair{x.rank, x.start}; });
  std::map<uint32_t, double> ended;
  for (auto& x : all) {
    const auto end = x.start + x.duration;
    if (is_communication(x.what) && !x.aside) {
      x.start = ended[x.rank];
      x.duration = end - x.start;
    }
    if (!x.aside)
      ended[x.rank] = end;
  }
  return all;
}

std::vector<event> slower(std::vector<event> all, double by) {
  for (auto& x : all) {
    x.start *= by;
    x.duration *= by;
  }
  return all;
}

double end_by(const training_job& job, uint32_t ranks, const cost_model& costs, std::vector<event>* events = nullptr) {
  auto found = simulate([&](rank& self) { return job.strategy->run(self, job.shape); }, job.shape, ranks, costs, true);
  REQUIRE_MESSAGE(found.engaged(), (found ? "" : render(found.error())));
  if (events != nullptr)
    *events = std::move(found->events);
  return found->end;
}

} // namespace

TEST_CASE(
  "profiled costs: from steps, of which some were disturbed, the simulator has the time of those that were not") {
  for (auto [strategy, ranks] :
       {std::pair{"ddp", 4}, {"ddp-overlap", 3}, {"zero1", 3}, {"zero3", 2}, {"1f1b", 3}, {"gpipe", 4}, {"zb-h1", 3}}) {
    CAPTURE(strategy);
    const auto job = small_job(strategy, 8, 24, 2);
    const auto world = static_cast<uint32_t>(ranks);
    std::vector<event> events;
    const auto truth = end_by(job, world, known_machine{}, &events);
    const auto measured = as_measured(std::move(events));
    std::vector<measured_step> steps;
    for (auto by : {4., 1.01, 1., 0.99, 2.5, 1.02, 0.98})
      steps.push_back({slower(measured, by), by * truth + 2, truth + 2});
    for (auto by : {3., 3.03, 2.97}) // when the machine was slower, so that all steps were
      steps.push_back({slower(measured, by), by * (truth + 2), 3 * (truth + 2)});
    const auto found = predict(job, world, steps, truth + 2);
    REQUIRE(found);
    CHECK(found->simulated.end == doctest::Approx(truth).epsilon(0.05));
    CHECK(found->seconds == doctest::Approx(truth + 2).epsilon(0.05));
    CHECK(found->measured.end == doctest::Approx(truth).epsilon(0.05));
  }
}

TEST_CASE("profiled costs: who waits for one that is held up now and then waits in the simulator, too") {
  for (const std::string strategy : {"ddp", "zero3", "fsdp", "1f1b"}) {
    CAPTURE(strategy);
    const auto job = small_job(strategy, 8, 24, 2);
    std::vector<event> events;
    const auto truth = end_by(job, 3, stuttering_machine{}, &events);
    CHECK(end_by(job, 3, profiled_costs{job, as_measured(std::move(events))}) == doctest::Approx(truth).epsilon(0.05));
  }
}

TEST_CASE("profiled costs: an operation takes what it took its rank, a collective as long as all are there") {
  const auto job = small_job("ddp", 2, 8, 4);
  const profiled_costs costs{
    job,
    {{.what = op::forward, .rank = 0, .layer = 1, .samples = {0, 4}, .start = 0, .duration = 2},
     {.what = op::all_reduce, .rank = 0, .layer = 1, .samples = {}, .start = 2, .duration = 7},
     {.what = op::forward, .rank = 1, .layer = 1, .samples = {4, 8}, .start = 0, .duration = 6},
     {.what = op::all_reduce, .rank = 1, .layer = 1, .samples = {}, .start = 6, .duration = 3.5}}};
  auto time_of = [&](op what, uint32_t by, uint64_t samples) {
    pending x;
    x.what = what;
    x.rank = by;
    x.argument.layer = 1;
    x.argument.samples.add(range_set{range{0, samples}});
    return costs.time_of(x, 2);
  };
  CHECK(time_of(op::all_reduce, 0, 8) == 3.5);
  CHECK(time_of(op::forward, 0, 4) == 2);
  CHECK(time_of(op::forward, 1, 4) == 6);
  CHECK(time_of(op::forward, 1, 2) == 3);
  CHECK(time_of(op::forward, 1, 8) == 12);
  CHECK(time_of(op::backward, 0, 2) == 0);
}

TEST_CASE("profiled costs: communications take what tuned constants make of them, all else what was measured") {
  const auto job = small_job("1f1b", 2, 8, 4);
  process_constants machine;
  machine.joint = {.operation_s = 1, .rank_s = 0.5, .bandwidth = 100};
  machine.training = {.collective_s = 20, .receive_s = 30};
  const profiled_costs costs{
    job,
    {{.what = op::forward, .rank = 0, .layer = 1, .samples = {0, 4}, .start = 0, .duration = 2},
     {.what = op::send, .rank = 0, .peer = 1, .layer = 1, .samples = {0, 4}, .start = 2, .duration = 0.25},
     {.what = op::receive, .rank = 1, .peer = 0, .layer = 1, .samples = {0, 4}, .start = 0, .duration = 9}},
    tuned_communications(job, machine)};
  auto time_of = [&](op what, value_kind kind) {
    pending x;
    x.what = what;
    x.among = {0, 2, 1};
    x.argument.kind = kind;
    x.argument.layer = 1;
    if (of_activation(kind))
      x.argument.samples.add(range_set{range{0, 4}});
    return std::pair{costs.time_of(x, 2), 2.0 * static_cast<double>(count_of(job, x) * bytes_of(job.as))};
  };
  CHECK(time_of(op::forward, value_kind::activation).first == 2);
  CHECK(time_of(op::send, value_kind::activation).first == 0.25);
  const auto [received, moved] = time_of(op::receive, value_kind::activation); // read, and written
  CHECK(received == doctest::Approx(30 + 1 + 2 * 0.5 + moved / 100));
  const auto [reduced, of_one] = time_of(op::all_reduce, value_kind::weight_gradient); // of two ranks
  CHECK(reduced == doctest::Approx(20 + 1 + 2 * 0.5 + 2 * of_one / 100));
  const auto [gathered, shards] = time_of(op::all_gather, value_kind::weight); // a shard in, two out
  CHECK(gathered == doctest::Approx(20 + 1 + 2 * 0.5 + 3 * shards / 100));
}

TEST_CASE("profiled costs: what waits aside for what was begun before it takes no longer for that") {
  const auto job = small_job("ddp-overlap", 3, 8, 4);
  std::vector<event> measured;
  for (uint32_t rank = 0; rank < 2; ++rank)
    for (uint32_t i = 0; i < 3; ++i) { // all begun at once, rank 1's a second later; done after 5 s each
      const double began = rank + 0.1 * i,
                   ended = 6 + 5. * i + (rank == 0 ? 0.5 : 0); // rank 0 is busy, and hears later
      measured.push_back({.what = op::all_reduce,
                          .aside = true,
                          .rank = rank,
                          .layer = 2 - i,
                          .samples = {},
                          .start = began,
                          .duration = ended - began});
    }
  const profiled_costs costs{job, measured};
  for (uint32_t layer = 0; layer < 3; ++layer) {
    pending x;
    x.what = op::all_reduce;
    x.argument.layer = layer;
    x.argument.samples.add(range_set{range{0, 8}});
    CHECK(costs.time_of(x, 2) == doctest::Approx(5));
  }
}

TEST_CASE("profiled costs: who waits for something aside computes no longer for that, and comes late from then on") {
  const auto job = small_job("fsdp", 3, 8, 4);
  const profiled_costs costs{
    job,
    {{.what = op::all_gather, .aside = true, .rank = 0, .layer = 1, .samples = {}, .start = 0, .duration = 5},
     {.what = op::forward, .rank = 0, .layer = 0, .samples = {0, 8}, .start = 0, .duration = 2},
     {.what = op::forward, .rank = 0, .layer = 1, .samples = {0, 8}, .start = 5.5, .duration = 1},
     {.what = op::forward, .rank = 0, .layer = 2, .samples = {0, 8}, .start = 7, .duration = 1}}};
  for (auto [layer, seconds] : {std::pair{0u, 2.}, {1u, 0.5 + 1 + 0.5}, {2u, 1.}}) {
    pending x;
    x.what = op::forward;
    x.argument.layer = layer;
    x.argument.samples.add(range_set{range{0, 8}});
    CHECK(costs.time_of(x, 1) == seconds);
  }
}

TEST_CASE("profiled costs: what holds a rank up before it begins, and what it prepares behind a send, takes its time") {
  const auto job = small_job("1f1b", 2, 8, 4);
  const profiled_costs costs{
    job,
    {{.what = op::input, .rank = 0, .layer = 0, .samples = {0, 4}, .start = 2, .duration = 1},
     {.what = op::forward, .rank = 0, .layer = 0, .samples = {0, 4}, .start = 3, .duration = 5},
     {.what = op::send, .rank = 0, .peer = 1, .layer = 1, .samples = {0, 4}, .start = 8, .duration = 1},
     {.what = op::input, .rank = 0, .layer = 0, .samples = {4, 8}, .start = 9.5, .duration = 3},
     {.what = op::forward, .rank = 0, .layer = 0, .samples = {4, 8}, .start = 13, .duration = 5},
     {.what = op::send, .rank = 0, .peer = 1, .layer = 1, .samples = {4, 8}, .start = 18, .duration = 1},
     {.what = op::receive, .rank = 1, .peer = 0, .layer = 1, .samples = {0, 4}, .start = 0, .duration = 11},
     {.what = op::forward, .rank = 1, .layer = 1, .samples = {0, 4}, .start = 11, .duration = 4},
     {.what = op::receive, .rank = 1, .peer = 0, .layer = 1, .samples = {4, 8}, .start = 15, .duration = 6},
     {.what = op::forward, .rank = 1, .layer = 1, .samples = {4, 8}, .start = 21.5, .duration = 4}}};
  auto forward_of = [&](uint32_t rank, uint64_t first) {
    pending x;
    x.what = op::forward;
    x.rank = x.argument.layer = rank;
    x.argument.samples.add(range_set{range{first, first + 4}});
    return costs.time_of(x, 2);
  };
  CHECK(forward_of(0, 0) == 2 + 1 + 5);         // late, and a drawing of samples
  CHECK(forward_of(0, 4) == 0.5 + 3 + 0.5 + 5); // another one
  CHECK(forward_of(0, 2) == 8.5);               // neither
  CHECK(forward_of(1, 0) == 4);                 // what it waited for does not count
  CHECK(forward_of(1, 4) == 0.5 + 4);
}

TEST_CASE("profiled costs: the median is the lower one of two") {
  CHECK(median_of({4, 1, 3, 2}) == 2);
  CHECK(median_of({3, 1, 2}) == 2);
  CHECK(median_of({}) == 0);
}

TEST_CASE("profiled costs: what steps took around one is theirs, whatever it took itself, also at the ends of a run") {
  std::vector<double> seconds(40, 1.);
  seconds.resize(100, 2.);
  seconds[0] = seconds[60] = seconds[99] = 7;
  CHECK(median_around(seconds, 0) == 1);
  CHECK(median_around(seconds, 39) == 1);
  CHECK(median_around(seconds, 40) == 2);
  CHECK(median_around(seconds, 60) == 2);
  CHECK(median_around(seconds, 99) == 2);
  CHECK(median_around(std::span{seconds}.first(1), 0) == 7);
}

TEST_CASE("profiled costs: steps that are measured are spread over a run, and over its epochs") {
  for (uint64_t an_epoch : {1, 2, 5, 9, 10, 11, 12, 93, 468})
    for (uint64_t epochs = 1; epochs <= 64; ++epochs) {
      CAPTURE(an_epoch);
      CAPTURE(epochs);
      const auto end = (epochs + 1) * an_epoch; // after the first one
      const auto found = spread_steps(an_epoch, end, an_epoch);
      CHECK(found.first >= an_epoch);
      uint64_t count = 0, first_ones = 0;
      for (auto step = found.first; step < end; step += found.every, ++count)
        first_ones += step % an_epoch == 0 ? 1 : 0;
      CHECK(count >= std::clamp<uint64_t>(epochs * an_epoch - 1, 1, 5));
      CHECK(count <= 15);
      if (an_epoch > 1)
        CHECK(first_ones <= count / an_epoch + 1);
    }
  CHECK(spread_steps(8, 9, 9).first == 8); // of one epoch the last step
}
