// What strategies hide behind computing, and hold for it.
#include "training/language/turns.hpp"

#include "tests/training/language/strategy_outcome.hpp"

#include <algorithm>
#include <cmath>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Layers of which only what is named takes time or room.
struct chosen_costs : cost_model {
  double forward = 1, backward = 2, collective = 0, attend = 0, hop = 0;
  double whole_weight = 0, whole_gradient = 0, activation = 0;

  std::string_view name() const override { return "chosen"; }
  std::string_view time_unit() const override { return "units"; }
  std::string_view memory_unit() const override { return "values"; }
  uint64_t memory_of(const value_tag& x) const override {
    if (x.kind == value_kind::activation)
      return static_cast<uint64_t>(activation * static_cast<double>(x.samples.count()) / x.part.count);
    return static_cast<uint64_t>(!x.part.whole()                         ? 0
                                 : x.kind == value_kind::weight          ? whole_weight
                                 : x.kind == value_kind::weight_gradient ? whole_gradient
                                                                         : 0);
  }
  double time_of(const pending& x, uint32_t) const override {
    const double part = x.argument.has == form::sequence ? x.argument.part.count : 1;
    switch (x.what) {
      case op::forward: return forward / part;
      case op::backward: return backward / part;
      case op::attend: return attend / part * x.argument.positions().count / x.argument.positions().of;
      case op::attend_backward: return 2 * attend / part * x.argument.positions().count / x.argument.positions().of;
      case op::send:
      case op::receive: return hop;
      default: return is_collective(x.what) ? collective : 0;
    }
  }
  bool leaves_at_end() const override { return true; }
  double mfu_percent(const model&, uint32_t, double) const override { return -1; }
};

bool close_to(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::abs(b);
}

/// How often rank 0 does it.
auto times_of(const training_outcome& x, op what) {
  return std::ranges::count_if(x.events, [&](auto& y) { return y.rank == 0 && y.what == what; });
}

} // namespace

TEST_CASE(
  "overlap: fsdp hides all but the first gather and each backward's last scatter where computing takes longer") {
  // A forward is as long as a gather, a backward as a gather and a scatter: 4 layers of 3 units and the scatter, twice.
  chosen_costs costs;
  costs.collective = 1;
  auto hidden = outcome_of("fsdp", {4, 8, 2}, 2, costs, true), plain = outcome_of("zero3", {4, 8, 2}, 2, costs, true);
  CHECK(hidden.end == 1 + 2 * (4 * 3 + 1));
  CHECK(plain.end == 2 * 4 * (3 + 3));
  CHECK(times_of(plain, op::all_gather) == 2 * 2 * 4);
  CHECK(times_of(hidden, op::all_gather) == 1 + 2 * 2 * 3); // a layer twice in a row is gathered once
  CHECK(times_of(hidden, op::reduce_scatter) == 2 * 4);
}

TEST_CASE(
  "overlap: fsdp holds as many whole weights as it gathers ahead, and one; and a whole gradient beside the next") {
  for (uint32_t ahead : {0, 1, 2, 5}) {
    model m{8, 8, 1};
    m.prefetch = ahead;
    chosen_costs weights, gradients;
    weights.whole_weight = gradients.whole_gradient = 1;
    weights.collective = gradients.collective = 0.5;
    CHECK(peak_memory_of(outcome_of("fsdp", m, 4, weights)) == ahead + 1);
    CHECK(peak_memory_of(outcome_of("fsdp", m, 4, gradients)) == 1); // as the next one's backward begins
    CHECK(peak_memory_of(outcome_of("hsdp", m, 4, weights)) == ahead + 1);
  }
}

TEST_CASE("overlap: under the lab's costs fsdp is faster than zero3, and holds a weight and a gradient more at most") {
  const model m{8, 64, 8};
  auto hidden = outcome_of("fsdp", m, 4, lab_costs()), plain = outcome_of("zero3", m, 4, lab_costs());
  CHECK(hidden.end < 0.75 * plain.end);
  CHECK(hidden.communication_fraction < plain.communication_fraction / 2);
  CHECK(hidden.bubble_fraction < 1e-9); // who waits for a gather waits for communication
  const uint64_t weight = uint64_t{4096} * 4096;
  CHECK(peak_memory_of(hidden)
        <= peak_memory_of(plain) + 2 * weight + weight / 4); // and a copy of the shard that is gathered
}

TEST_CASE("overlap: of a wait for a collective only its own time is communication, what it queues for is waiting") {
  // Two gathers are begun at once, a unit each: the second one ends at 2. The rank then computes for 3.
  chosen_costs costs;
  costs.collective = 1;
  const auto program = [](bool second_first) {
    return [second_first](rank& self) -> strategy {
      auto [one, its] = co_await self.load_weights(0, {self.index(), 2});
      auto [other, others] = co_await self.load_weights(0, {self.index(), 2});
      auto first = self.aside(self.all_gather(one)), second = self.aside(self.all_gather(other));
      weight a, b;
      if (second_first) {
        b = co_await std::move(second);
        a = co_await std::move(first);
      } else {
        a = co_await std::move(first);
        b = co_await std::move(second);
      }
      auto [w, state] = co_await self.load_weights(0);
      auto x = co_await self.input({0, 1});
      auto y = co_await self.forward(x, w);
      auto [gradient, by_input] = co_await self.backward(x, w, co_await self.loss(y));
      co_await self.update(w, state, std::move(gradient));
      co_await self.finish(std::move(w));
    };
  };
  for (bool second_first : {true, false}) {
    CAPTURE(second_first);
    auto found = simulate(program(second_first), {1, 1, 1}, 2, costs);
    REQUIRE_MESSAGE(found.engaged(), render(found.error()));
    CHECK(found->end == 5);
    for (auto& each : found->ranks) {
      CHECK(each.compute == 3);
      CHECK(each.aside == 2);
      CHECK(each.communication == (second_first ? 1 : 2));
    }
    CHECK(close_to(found->communication_fraction, second_first ? 0.2 : 0.4));
    CHECK(found->bubble_fraction == doctest::Approx(second_first ? 0.2 : 0));
  }
}

TEST_CASE("overlap: hsdp gathers and scatters within its groups, and sums over them once") {
  model m{4, 32, 1};
  m.shard_ranks = 4;
  auto found = outcome_of("hsdp", m, 16, lab_costs(), true);
  CHECK(times_of(found, op::all_reduce) == 4); // a layer, however many micro-batches
  CHECK(times_of(found, op::reduce_scatter) == 2 * 4);
  // Groups of 4 neighbours have NVLink, the world of 16 has not.
  CHECK(found.end < outcome_of("fsdp", m, 16, lab_costs()).end);
  m.shard_ranks = 6;
  auto refused = strategy_of("hsdp")->check(m, 16);
  CHECK(render(refused) == "16 ranks are no groups of 6: --shard must divide them");
}

TEST_CASE("overlap: zero1-overlap hides what zero1 gathers and scatters") {
  // 4 layers: gathers beside forwards, the first before them; scatters beside backwards, the last after them.
  chosen_costs costs;
  costs.collective = 1;
  const model m{4, 4, 1, 1};
  CHECK(outcome_of("zero1-overlap", m, 2, costs).end == 1 + 2 * 4 * 3 + 1);
  CHECK(outcome_of("zero1", m, 2, costs).end == 2 * 4 * 3 + 2 * 4);
  CHECK(outcome_of("zero1-overlap", {8, 64, 8}, 4, lab_costs()).end
        < outcome_of("zero1", {8, 64, 8}, 4, lab_costs()).end);
}

TEST_CASE("overlap: a ring hides its hops behind attention, and ranks have their part of positions and of the work") {
  chosen_costs costs;
  costs.attend = 8; // of all positions to all
  costs.activation = 16;
  for (uint32_t c : {1, 2, 4}) {
    CAPTURE(c);
    model m{2, 4, 1};
    m.context = c;
    const auto ranks = 2 * c; // two data-parallel groups, two samples each, of two layers
    const auto work = 2 * 2 * (1 + 2 + 8 + 16.) / c;
    costs.hop = 0;
    CHECK(close_to(outcome_of("context", m, ranks, costs).end, work));
    CHECK(close_to(outcome_of("context-gather", m, ranks, costs).end, work));
    // Two of them are as long as attention to one rank's keys; on the way back four, and it takes twice as long. What
    // is left are the two that take a layer's gradient home, and nothing where there is no ring.
    costs.hop = 8. / c / c / 2;
    CHECK(close_to(outcome_of("context", m, ranks, costs).end, work + (c == 1 ? 0 : 2 * 2 * 2 * costs.hop)));
    auto found = outcome_of("context", m, ranks, costs);
    CHECK(peak_memory_of(found) == 3 * 16 / c); // the inputs of two layers, and the output, of one sample
  }
}

TEST_CASE("overlap: the lab's attention takes its positions and the keys that they look at through the memory") {
  // 2 samples, 4 ranks that share their 1024 positions: 512 of a rank's, in and out, and 2048 keys and values, of 4096
  // elements of 2 bytes. The 2 x 4096 x 512 x 1024 operations for each of two products, half of which are causal, take
  // 7 us, and less than that.
  model m{1, 2, 2};
  auto found = outcome_of("context-gather", m, 4, lab_costs(), true);
  for (auto& x : found.events)
    if (x.what == op::attend)
      CHECK(close_to(x.duration, 2. * 4096 * (2 * 512 + 2 * 2048) / (3072e9 * 0.75)));
  auto ring = outcome_of("context", m, 4, lab_costs(), true);
  CHECK(times_of(ring, op::attend) == 4);
  CHECK(times_of(ring, op::send) == 3 + 3 + 4); // keys there and back, gradients by them home
}

TEST_CASE("overlap: what goes to experts and back is hidden behind another micro-batch, and is not without one") {
  chosen_costs costs;
  costs.collective = 1;
  // Four layers, two of them of experts. By twos each all_to_all is beside a forward or backward of the other one.
  auto pair = outcome_of("expert", {4, 4, 1}, 2, costs), alone = outcome_of("expert", {4, 4, 2}, 2, costs);
  const double sums = 2; // of two layers' gradients; of experts a rank has its own
  CHECK(alone.end == 4 * 3 + 4 * 2 + sums);
  CHECK(pair.end == 2 * 4 * 3 + 2 + sums); // the turn: the output comes back, its gradient goes there
}

TEST_CASE("overlap: in blocks of a pipeline a forward and a backward hide what the other one sends to experts") {
  chosen_costs costs;
  costs.collective = 1;
  auto seconds = [&](const char* strategy, uint32_t chunks, uint32_t micro_batches) {
    model m{8, 2 * micro_batches, 1, chunks, 1, 2};
    m.experts = 2;
    return outcome_of(strategy, m, 4, costs).end;
  };
  // What each further micro-batch takes: of two ranks' 8 layers, 4 on each, two of them of experts, 3 units of work,
  // with an all_to_all on each side of each, there and back.
  const double work = 4 * 3, ways = 2 * 4;
  auto further = [&](const char* strategy, uint32_t chunks) {
    return (seconds(strategy, chunks, 24) - seconds(strategy, chunks, 16)) / 8;
  };
  CHECK(further("3d", 1) == work + ways);
  CHECK(further("3d", 2) == work);
  CHECK(further("dualpipe", 2) == work);
}

TEST_CASE("overlap: two parts of a strategy alternate until both have finished") {
  turns by_turns;
  std::string order;
  auto part = [&](char name, uint32_t steps) -> strategy {
    for (uint32_t i = 0; i < steps; ++i) {
      order += name;
      co_await by_turns.pass();
    }
  };
  auto all = [&]() -> strategy {
    co_await by_turns.pass(); // no other part
    order += '(';
    co_await by_turns.both(part('a', 2), part('b', 4));
    order += ')';
    co_await by_turns.both(part('c', 3), part('d', 0));
    order += '.';
  };
  auto running = all();
  running.body().resume();
  CHECK(order == "(ababbb)ccc.");
  CHECK(!by_turns.any());
}

TEST_CASE("overlap: experts are summed over those that have the same ones") {
  model m{2, 8, 1};
  m.experts = 2;
  auto found = outcome_of("expert", m, 8, lab_costs(), true);
  CHECK(times_of(found, op::all_reduce) == 2);
  m.experts = 8;
  CHECK(times_of(outcome_of("expert", m, 8, lab_costs(), true), op::all_reduce) == 1);
  m.experts = 3;
  CHECK(render(strategy_of("expert")->check(m, 8))
        == "8 ranks are no groups of 3 that share experts: --experts must divide them");
}

TEST_CASE(
  "overlap: strategies of attention and of experts are simulated, and say so where they are to train for real") {
  model m{2, 8, 1};
  m.for_real = true;
  for (auto* name : {"context", "context-gather"})
    CHECK(render(strategy_of(name)->check(m, 2)).find("need layers of attention that can work on some of them")
          != std::string::npos);
  CHECK(render(strategy_of("expert")->check(m, 2)).find("need layers of experts and a router") != std::string::npos);
}

TEST_CASE("overlap: shards are cut among any number of ranks, positions among at most their number") {
  for (auto* name : {"zero1", "zero2", "zero3", "zero1-overlap", "fsdp"})
    CHECK(outcome_of(name, {2, 1032}, 1032, lab_costs()).end > 0);
  model m{1, 1};
  m.tensor = 1032;
  m.sequence_parallel = true;
  auto refused = simulate([&](rank& self) { return strategy_of("tensor")->run(self, m); }, m, 1032, lab_costs());
  REQUIRE(!refused.engaged());
  CHECK_MESSAGE(render(refused.error()).find(" are more than the 1024 that its positions are cut in")
                  != std::string::npos,
                render(refused.error()));
}

TEST_CASE("overlap: a rank's collectives have its link one after the other, on any streams") {
  chosen_costs costs;
  costs.collective = 10;
  auto both = [](rank& self) -> strategy {
    std::vector<weight> weights(2);
    std::vector<optimizer_state> states(2);
    for (uint32_t l : {0, 1})
      std::tie(weights[l], states[l]) = co_await self.load_weights(l);
    auto x = co_await self.input(samples_of({2, 2}, self.index(), 2));
    auto y = co_await self.forward(x, weights[0]);
    auto by_output = co_await self.loss(co_await self.forward(y, weights[1]));
    weight_gradient last, first;
    std::tie(last, by_output) = co_await self.backward(y, weights[1], by_output);
    std::tie(first, by_output) = co_await self.backward(x, weights[0], by_output);
    auto beside = self.aside(self.all_reduce(std::move(last), self.world()));
    co_await self.update(weights[0], states[0], co_await self.all_reduce(std::move(first), self.world()));
    co_await self.update(weights[1], states[1], co_await std::move(beside));
    for (auto& each : weights)
      co_await self.finish(std::move(each));
  };
  auto found = simulate(both, {2, 2}, 2, costs);
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  CHECK(found->end == 2 * costs.forward + 2 * costs.backward + 2 * costs.collective);
}

TEST_CASE("overlap: an all_to_all takes as long as it does on the rank that has the most to move") {
  struct : chosen_costs {
    double time_of(const pending& x, uint32_t world_size) const override {
      return x.what == op::all_to_all ? (x.rank == 1 ? 5 : 0) : chosen_costs::time_of(x, world_size);
    }
  } uneven;
  model m{2, 2, 1};
  m.experts = 2;
  CHECK(outcome_of("expert", m, 2, uneven).end == outcome_of("expert", m, 2, chosen_costs{}).end + 4 * 5);
}

TEST_CASE("overlap: keys go around neighbours as fast in a large world as in a small one") {
  model m{2, 8, 1};
  m.context = 8;
  const auto alone = outcome_of("context", m, 8, lab_costs()).end;
  m.global_batch = 16;
  CHECK(outcome_of("context", m, 16, lab_costs()).end < 1.2 * alone); // gradients are summed over all
}
