// Programs that cheat, or wait for what never comes: on devices each ends with a sentence, as it does in virtual time
// (tests/runtime/training/forgery_test.cpp), at once and with its step.
#include "tests/support/training/one_layer.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// A step of data parallel training of one layer, by these samples.
task<weight_gradient> sum_of(rank& self, const weight& w, range samples) {
  auto x = co_await self.input(samples);
  co_return co_await self.all_reduce(co_await gradient_by(self, w, x), self.world());
}

range own_samples(rank& self, const model& m) {
  return samples_of(m, self.index(), self.world_size());
}

strategy never_finishes(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  co_await self.update(w, state, co_await sum_of(self, w, own_samples(self, m)));
}

strategy finishes_the_first_step_alone(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  static uint32_t begun = 0;
  const bool finishes = begun++ < self.world_size();
  co_await self.update(w, state, co_await sum_of(self, w, own_samples(self, m)));
  if (finishes)
    co_await self.finish(std::move(w));
}

strategy waits_in_a_circle(rank& self, const model&) {
  auto x = co_await self.receive<activation>((self.index() + 1) % self.world_size());
}

strategy ends_early(rank& self, const model& m) {
  if (self.index() == 2)
    co_return;
  auto [w, state] = co_await self.load_weights(0);
  co_await self.update(w, state, co_await sum_of(self, w, own_samples(self, m)));
  co_await self.finish(std::move(w));
}

strategy receives_where_others_reduce(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  if (self.index() == 0)
    auto x = co_await self.receive<activation>(1);
  co_await self.update(w, state, co_await sum_of(self, w, own_samples(self, m)));
  co_await self.finish(std::move(w));
}

strategy keeps_its_own_gradient(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input(own_samples(self, m));
  co_await self.update(w, state, co_await gradient_by(self, w, x));
  co_await self.finish(std::move(w));
}

strategy counts_samples_twice(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  co_await self.update(w, state, co_await sum_of(self, w, samples_of(m, 0, self.world_size())));
  co_await self.finish(std::move(w));
}

strategy calls_another_collective(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input(own_samples(self, m));
  if (self.index() == 0)
    auto y = co_await self.broadcast(x, 0, self.world());
  co_await self.update(w, state, co_await sum_of(self, w, own_samples(self, m)));
}

/// Each waits aside, which keeps no rank from going on as far as others know.
strategy waits_aside_in_a_circle(rank& self, const model&) {
  auto later = self.aside(self.receive<activation>((self.index() + 1) % self.world_size()));
  auto x = co_await std::move(later);
}

/// How three ranks end that run it, which had to begin their step again so often.
std::string end_of(strategy (*program)(rank&, const model&), uint64_t given_up = 0) {
  static known_strategy forged;
  forged = {.name = "forged",
            .what = "a program that cheats",
            .run = program,
            .check = check_data_parallel,
            .cut = batch_cut::never};
  simulated_cluster cluster{training_devices(3, 7)};
  auto job = small_job("ddp", 1, 6, 2);
  job.strategy = &forged;
  simulated_training run{cluster, std::move(job), 3, 3};
  const auto begun = cluster.scheduler.clock().now();
  run.run();
  CHECK(cluster.scheduler.clock().now() - begun < std::chrono::seconds{given_up == 0 ? 5 : 200});
  CHECK(run.notes_with("is given up: nothing has happened") == given_up);
  return run.problem();
}

} // namespace

TEST_CASE("forgeries on devices: a weight that nobody finishes is named, in whichever step") {
  CHECK(end_of(never_finishes)
        == "step 0: no rank has finished the whole of the weight of layer 0: update it, and finish it");
  CHECK(end_of(finishes_the_first_step_alone)
        == "step 1: no rank has finished the whole of the weight of layer 0: update it, and finish it");
}

TEST_CASE("forgeries on devices: ranks that wait for what never comes are told at once") {
  const std::string sends = " to send it an activation";
  CHECK(end_of(waits_in_a_circle)
        == "step 0: rank 0 waits for rank 1" + sends + ", rank 1 waits for rank 2" + sends + ", rank 2 waits for rank 0"
             + sends + ": none of them can go on");
  CHECK(end_of(waits_aside_in_a_circle, 2)
          .starts_with("step 0 has stood still 3 times with the same ranks: nothing has happened for "));
  const auto early = end_of(ends_early);
  CHECK(early.starts_with("step 0: rank "));
  CHECK(early.ends_with(", which has ended"));
  const auto mixed = end_of(receives_where_others_reduce);
  CHECK(
    mixed.starts_with("step 0: rank 0 waits for rank 1" + sends + ", rank 1 waits for rank 0 to call all_reduce of"));
  CHECK(mixed.ends_with(": none of them can go on"));
}

TEST_CASE(
  "forgeries on devices: sums that miss samples, or count them twice, and calls that do not match are refused") {
  CHECK(end_of(keeps_its_own_gradient).ends_with("update: the gradient is incomplete: it has samples 0-1 of 0-5"));
  const auto twice = end_of(counts_samples_twice);
  CHECK(twice.starts_with("step 0: rank 1, all_reduce: the gradient by the weight of layer 0"));
  CHECK(twice.find("would count twice") != twice.npos);
  CHECK(end_of(calls_another_collective)
          .starts_with("step 0: the ranks' collectives do not match: rank 0 calls broadcast of the input of layer 0"));
}
