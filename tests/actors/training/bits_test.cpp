// Results that are the same to the last bit, in virtual time.
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

constexpr uint32_t bits_layers = 4;

training_job bits_job(std::string_view strategy) {
  return small_job(strategy, bits_layers, 10, 2);
}

training_job ordered_job() {
  auto result = small_job("ddp-ordered", bits_layers, 12, 1);
  result.shape.virtual_ranks = 4;
  return result;
}

/// The model that `ranks` ranks have after `steps` steps, from the first weights or from another model.
model_snapshot model_after(const training_job& job, uint32_t ranks, uint64_t steps, model_snapshot from = {}) {
  simulated_cluster cluster{training_devices(ranks, 77)};
  simulated_training run{cluster, job, ranks, steps};
  run.settings.from = std::move(from);
  run.run();
  REQUIRE(run.problem() == "");
  CHECK(run.notes.empty());
  return **run.outcome;
}

/// One of the ranks dies at some moment, for each seed, without a spare: the others end with the bits of a fresh run of
/// `few` ranks by `job_of_few`, from the model as of the first step that they ran. Returns the number of such steps. If
/// that was no step or the first one, there is nothing to compare.
std::set<uint64_t> steps_shrunk_at(const training_job& job, uint32_t ranks, const training_job& job_of_few,
                                   uint32_t few, uint64_t seeds,
                                   const std::function<void(const simulated_training&, uint64_t step)>& also = {}) {
  constexpr uint64_t steps = 6;
  std::set<uint64_t> result;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{training_devices(ranks, seed)};
    simulated_training run{cluster, job, ranks, steps};
    run.settings.mirror = true;
    run.start();
    run.run_steps(1 + seed % 4);
    run.run_messages(seed * 13);
    run.kill(seed % ranks);
    run.finish();
    REQUIRE(run.problem() == "");
    const auto fewer = std::ranges::find(run.reports, few, &step_report::ranks);
    if (fewer == run.reports.end() || fewer->step == 0)
      continue;
    result.insert(fewer->step);
    if (also)
      also(run, fewer->step);
    const auto before = model_after(job, ranks, fewer->step);
    const auto fresh = model_after(job_of_few, few, steps, before);
    for (uint32_t layer = 0; layer < bits_layers; ++layer)
      CHECK(run.weights(layer) == run.weights_in(fresh, layer));
  }
  return result;
}

} // namespace

TEST_CASE("bits: after a death they are those of a fresh run of the other ranks, from that step's weights and states") {
  for (const std::string strategy : {"ddp", "ddp-overlap", "zero1", "zero3", "1f1b", "gpipe"}) {
    CAPTURE(strategy);
    CHECK(steps_shrunk_at(bits_job(strategy), 3, bits_job(strategy), 2, 8).size() > 2);
  }
}

TEST_CASE("bits: the micro-batch grows when ranks die, with the bits of a fresh run, also for odd batches") {
  auto job_of = [](const std::string& strategy, uint64_t at_once) { // the default: all samples of one of the ranks
    auto job = small_job(strategy, bits_layers, 11, at_once);
    job.all_at_once = true;
    return job;
  };
  for (const std::string strategy : {"ddp", "zero3", "fsdp"}) {
    CAPTURE(strategy);
    CHECK(steps_shrunk_at(job_of(strategy, 4), 3, job_of(strategy, 6), 2, 4).size() > 1);
  }
}

TEST_CASE("bits: a pipeline's micro-batch follows from the ranks that are left, with the bits of a fresh run") {
  constexpr uint64_t batch = 24; // three stages: 12 micro-batches of 2; two: 8 of 3
  for (const std::string strategy : {"1f1b", "gpipe", "zb-h1"}) {
    CAPTURE(strategy);
    auto job = small_job(strategy, bits_layers, batch, 1);
    job.all_at_once = true;
    CHECK(steps_shrunk_at(job, 3, small_job(strategy, bits_layers, batch, 3), 2, 4).size() > 1);
  }
  auto job = small_job("interleaved", bits_layers, batch, 1);
  job.all_at_once = true;
  CHECK(steps_shrunk_at(job, 2, small_job("1f1b", bits_layers, batch, 6), 1, 4).size() > 1);
}

TEST_CASE("bits: with configured groups the ranks that are left form fewer groups, with the bits of a fresh run") {
  for (const std::string strategy : {"tensor", "tensor-naive", "1f1b"}) {
    CAPTURE(strategy);
    auto job = bits_job(strategy);
    job.shape = with_setting(job.shape, {{.tp = 2, .dp = 2}});
    auto in_one_group = job;
    in_one_group.shape.parallel.dp = 1;
    auto says_so = [](const simulated_training& run, uint64_t step) {
      CHECK(run.notes.back()
            == fmt::format("from step {} on 2 ranks train, 2 tensor-parallel x 1 data-parallel in place of 2 "
                           "tensor-parallel x 2 data-parallel; 1 more does nothing until others join",
                           step));
    };
    CHECK(steps_shrunk_at(job, 4, in_one_group, 2, 6, says_so).size() > 2);
  }
}

TEST_CASE("bits: another strategy stands in where fewer ranks cannot use theirs, until others have joined") {
  for (const std::string strategy : {"interleaved", "dualpipe"}) {
    CAPTURE(strategy);
    const auto note = "on 1 rank trains, by 1f1b in place of " + strategy;
    auto job_of = [](const std::string& name) { return small_job(name, bits_layers, 8, 1); };
    const auto says = [&](const simulated_training& run, uint64_t) { CHECK(run.notes_with(note) == 1); };
    CHECK(steps_shrunk_at(job_of(strategy), 2, job_of("1f1b"), 1, 8, says).size() > 2);

    constexpr uint64_t steps = 8;
    simulated_cluster cluster{training_devices(3)};
    simulated_training run{cluster, job_of(strategy), 2, steps};
    run.settings.mirror = true;
    run.start();
    run.run_steps(2);
    run.kill(1); // the third comes in its place
    run.finish();
    REQUIRE(run.problem() == "");
    CHECK(run.notes_with(note) == 1);
    CHECK(run.reports.back().ranks == 2);
    const auto alone = weights_alone(8, steps, bits_layers);
    for (uint32_t layer = 0; layer < bits_layers; ++layer)
      CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
  }
}

TEST_CASE("bits: ranks in fewer groups go back to the configured ones when others have joined") {
  auto job = bits_job("tensor");
  job.shape = with_setting(job.shape, {{.tp = 2, .dp = 2}});
  simulated_cluster cluster{training_devices(5)};
  simulated_training run{cluster, job, 4, 12};
  run.settings.mirror = true;
  run.start();
  run.run_steps(2);
  run.kill(1);
  run.finish();
  REQUIRE(run.problem() == "");
  CHECK(run.notes_with("has joined") == 1);
  CHECK(run.reports.back().ranks == 4);
  const auto alone = weights_alone(10, 12, bits_layers);
  for (uint32_t layer = 0; layer < bits_layers; ++layer)
    CHECK(distance(run.weights(layer), alone[layer]) < 1e-12);
}

TEST_CASE("bits: virtual ranks give the same bits on any number of ranks, also after deaths and joins") {
  constexpr uint64_t steps = 8;
  std::vector<std::vector<double>> expected;
  {
    auto job = ordered_job();
    computed_world alone{job, 1, 4 << 20};
    for (uint64_t i = 0; i < steps; ++i)
      REQUIRE(alone.run_step());
    for (uint32_t layer = 0; layer < bits_layers; ++layer)
      expected.push_back(weights_of(alone, job, layer));
  }
  for (uint32_t ranks = 1; ranks <= 4; ++ranks) {
    CAPTURE(ranks);
    simulated_cluster undisturbed{training_devices(ranks)};
    simulated_training whole{undisturbed, ordered_job(), ranks, steps};
    whole.run();
    REQUIRE(whole.problem() == "");
    uint64_t joined = 0, fewer = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random{seed};
      simulated_cluster cluster{training_devices(ranks + seed % 2, seed + 1)}; // one spare, or none
      simulated_training run{cluster, ordered_job(), ranks, steps};
      if (ranks == 1 && seed % 2 == 0)
        continue; // no rank would be left
      run.start();
      run.run_steps(random() % (steps - 1));
      run.run_messages(random() % (30 * ranks));
      run.kill(random() % ranks);
      run.finish();
      REQUIRE(run.problem() == "");
      joined += run.notes_with("has joined");
      fewer += run.reports.back().ranks < ranks ? 1 : 0;
      for (uint32_t layer = 0; layer < bits_layers; ++layer)
        CHECK(run.weights(layer) == expected[layer]);
    }
    CHECK(joined > 0);
    CHECK((fewer > 0 || ranks == 1));
    for (uint32_t layer = 0; layer < bits_layers; ++layer)
      CHECK(whole.weights(layer) == expected[layer]);
  }
}
