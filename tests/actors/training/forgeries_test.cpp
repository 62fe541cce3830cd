// Programs that cheat, or wait for something that never comes: on devices each ends at once with an error and its step,
// as in simulation (tests/training/language/forgery_test.cpp).
#include "tests/support/training/one_layer.hpp"
#include "tests/support/training/simulated_training.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// A step of data parallel training of one layer, with these samples.
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

/// Each waits aside, which blocks no rank as far as others know.
strategy waits_aside_in_a_circle(rank& self, const model&) {
  auto later = self.aside(self.receive<activation>((self.index() + 1) % self.world_size()));
  auto x = co_await std::move(later);
}

strategy broadcasts_another_kind(rank& self, const model& m) {
  if (self.index() == 0) {
    auto x = co_await self.input(own_samples(self, m));
    auto y = co_await self.broadcast(x, 0, self.world());
  } else {
    auto gradient = co_await self.broadcast(weight_gradient{}, 0, self.world());
  }
}

strategy never_awaits(rank& self, const model&) {
  auto [w, state] = co_await self.load_weights(0);
  auto never = self.finish(std::move(w));
}

strategy overwrites_a_handle(rank& self, const model&) {
  auto [w, state] = co_await self.load_weights(0, {self.index(), self.world_size()});
  auto first = self.aside(self.all_gather(w));
  first = self.aside(self.all_gather(w));
  auto whole = co_await std::move(first);
}

strategy waits_for_nothing(rank&, const model&) {
  handle<weight> none;
  auto w = co_await std::move(none);
}

/// A common mistake in zero-bubble schedules.
strategy updates_between_the_halves(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input(own_samples(self, m));
  auto y = co_await self.forward(x, w);
  auto by_output = co_await self.loss(y);
  auto gradient = co_await self.backward_weight(x, w, by_output);
  co_await self.update(w, state, co_await self.all_reduce(std::move(gradient), self.world()));
  auto by_input = co_await self.backward_input(x, w, by_output);
}

strategy gathers_out_of_order(rank& self, const model&) {
  auto [w, state] = co_await self.load_weights(0, {self.world_size() - 1 - self.index(), self.world_size()});
  auto whole = co_await self.all_gather(w);
}

/// State that a rank in another process could not reach.
strategy takes_what_was_not_sent(rank& self, const model&) {
  static activation* smuggled = nullptr;
  auto [w, state] = co_await self.load_weights(0);
  if (self.index() == 0) {
    auto mine = co_await self.input({0, 1});
    smuggled = &mine;
    co_await self.send(1, mine);
    mine = co_await self.receive<activation>(1); // and waits
  } else if (self.index() == 1) {
    auto sent = co_await self.receive<activation>(0);
    auto y = co_await self.forward(*smuggled, w);
  }
}

strategy takes_what_is_not_there(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input(own_samples(self, m));
  auto never = self.forward(x, w);
  auto y = never.await_resume();
}

strategy adds_on_the_host(rank& self, const model& m) {
  auto [w, state] = co_await self.load_weights(0);
  auto x = co_await self.input(own_samples(self, m));
  weight_gradient sum;
  for (int i = 0; i < 2; ++i) {
    co_await self.add(sum, co_await gradient_by(self, w, x));
    sum = co_await self.offload(std::move(sum));
  }
}

/// The error with which three ranks that run it end, after this number of repeated attempts.
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

TEST_CASE("forgeries on devices: a weight that no rank finishes is named, in any step") {
  CHECK(end_of(never_finishes)
        == "step 0: no rank has finished the whole of the weight of layer 0: update it, and finish it");
  CHECK(end_of(finishes_the_first_step_alone)
        == "step 1: no rank has finished the whole of the weight of layer 0: update it, and finish it");
}

TEST_CASE("forgeries on devices: ranks that wait for something that never comes fail at once") {
  const std::string sends = " to send it an activation";
  CHECK(end_of(waits_in_a_circle)
        == "step 0: rank 0 waits for rank 1" + sends + ", rank 1 waits for rank 2" + sends + ", rank 2 waits for rank 0"
             + sends + ": none of them can go on");
  CHECK(end_of(waits_aside_in_a_circle, 2)
          .starts_with("step 0 has stalled 3 times with the same ranks: nothing has happened for "));
  const auto early = end_of(ends_early);
  CHECK(early.starts_with("step 0: rank "));
  CHECK(early.ends_with(", which has ended"));
  const auto mixed = end_of(receives_where_others_reduce);
  CHECK(
    mixed.starts_with("step 0: rank 0 waits for rank 1" + sends + ", rank 1 waits for rank 0 to call all_reduce of"));
  CHECK(mixed.ends_with(": none of them can go on"));
}

TEST_CASE("forgeries on devices: sums that lack samples or count them twice, and mismatched calls are refused") {
  CHECK(end_of(keeps_its_own_gradient).ends_with("update: the gradient is incomplete: it has samples 0-1 of 0-5"));
  const auto twice = end_of(counts_samples_twice);
  CHECK(twice.starts_with("step 0: rank 1, all_reduce: the gradient by the weight of layer 0"));
  CHECK(twice.find("would count twice") != twice.npos);
  CHECK(end_of(calls_another_collective)
          .starts_with("step 0: the ranks' collectives do not match: rank 0 calls broadcast of the input of layer 0"));
}

TEST_CASE("forgeries on devices: errors of handles, kinds, halves, shards and foreign values are those of simulation") {
  const std::string weights = "the weight of layer 0, step 0";
  const std::pair<strategy (*)(rank&, const model&), std::string> all[] = {
    {broadcasts_another_kind,
     "collectives do not match: rank 0 calls broadcast of the input of layer 0, samples 0-1, "},
    {never_awaits, "has never awaited its finish of " + weights},
    {overwrites_a_handle, "has never waited for its all_gather of " + weights + ", shard "},
    {waits_for_nothing, "a handle is waited for that is empty, or was waited for before"},
    {updates_between_the_halves, " is not for the weight of layer 0, step 1"},
    {gathers_out_of_order, "all_gather: " + weights + ", shard "},
    {takes_what_was_not_sent,
     "rank 1, forward: the input of layer 0, samples 0 is another rank's, which has not sent it"},
    {takes_what_is_not_there, "has never awaited its forward of the input of layer 0, samples "},
    {adds_on_the_host, ", on the host is to be fetched first"}};
  for (auto& [program, sentence] : all) {
    const auto said = end_of(program);
    CHECK_MESSAGE(said.starts_with("step 0: "), said);
    CHECK_MESSAGE(said.find(sentence) != said.npos, said);
  }
}
