#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"
#include "tests/training/language/refused_run.hpp"
#include "tests/training/language/strategy_outcome.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// A world in which only the stages take time, and hops none.
struct stages_only : cost_model {
  double forward = 1, by_input = 1, by_weight = 1;

  std::string_view name() const override { return "stages"; }
  std::string_view time_unit() const override { return "stages"; }
  std::string_view memory_unit() const override { return "samples"; }
  uint64_t memory_of(const value_tag& x) const override {
    return x.kind == value_kind::activation ? x.samples.count() : 0;
  }
  double time_of(const pending& x, uint32_t) const override {
    switch (x.what) {
      case op::forward: return forward;
      case op::backward: return by_input + by_weight;
      case op::backward_input: return by_input;
      case op::backward_weight: return by_weight;
      default: return 0;
    }
  }
  bool leaves_at_end() const override { return true; }
  double mfu_percent(const model&, uint32_t, double) const override { return -1; }
};

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::abs(b);
}

} // namespace

TEST_CASE("strategies: the puzzles' data parallel takes the original's time and memory") {
  // Two layers, a batch a rank: forward 2, backward 2, all_reduce 0.6, update 1; the last update starts at 5.1. Held
  // then, in weights of 262,144: weights and optimizer states 4, gradients 2 and a half for activations before they
  // went.
  auto& costs = puzzle_costs();
  auto found = outcome_of("ddp", {2, 4, 1}, 4, costs);
  CHECK(near(found.time, 5.1));
  CHECK(near(found.end, 5.6));
  CHECK(peak_memory_of(found) <= 1'835'008);
}

TEST_CASE("strategies: the lab's published results") {
  auto& costs = lab_costs();
  model m{36, 32, 4};
  auto parallel = outcome_of("ddp", m, 8, costs);
  CHECK(near(parallel.time, 0.01967935151316352));
  CHECK(std::abs(costs.mfu_percent(m, 8, parallel.time) - 50.284) < 0.001);
  CHECK(near(outcome_of("1f1b", {2, 8, 2}, 2, costs).time, 0.001385264218244255));
}

TEST_CASE("strategies: ZeRO-3 gathers and scatters each layer for each micro-batch, as the lab's does") {
  // 4 ranks, 4 layers, 16 samples in micro-batches of 2: a rank has 2 micro-batches, each of which gathers 4 layers
  // twice and scatters 4 gradients. By the lab's rules (S = 2 x 4096^2 = 33,554,432 bytes of a weight):
  //   loading a quarter: 8,388,608 bytes at 450 GB/s x 0.7
  //   a gather or scatter: 10 us + S / (450 GB/s x 0.65)
  //   forward or backward of 2 samples: 2 x 4096^2 x 2048 = 68.7 GFLOP at 1000 TFLOP/s x 0.9
  //   updating a quarter: 4096 x 1024 = 4,194,304, 6 bytes for each, at 3072 GB/s x 0.75
  const double load = 8'388'608 / (450e9 * 0.7), exchange = 1e-5 + 33'554'432 / (450e9 * 0.65),
               pass = 68'719'476'736 / (1000e12 * 0.9), update = 25'165'824 / (3072e9 * 0.75);
  auto found = outcome_of("zero3", {4, 16, 2}, 4, lab_costs(), true);
  auto times = [&](op x) {
    return std::ranges::count_if(found.events, [&](auto& y) { return y.rank == 0 && y.what == x; });
  };
  CHECK(times(op::all_gather) == 2 * 2 * 4);
  CHECK(times(op::reduce_scatter) == 2 * 4);
  CHECK(times(op::all_reduce) == 0);
  CHECK(near(found.end, 4 * load + (16 + 8) * exchange + 2 * 2 * 4 * pass + 4 * update));
  CHECK(near(found.time, found.end - update)); // to the start of the last event, the last layer's update
  // The most is held as the second micro-batch's first backward begins: with w = 4096^2 elements of a weight, 4
  // quarters of each of weights, states and sums, 3 w; 4 inputs of 2 x 4096 x 1024 = w/2 each, 2 w; the gradient by the
  // output, w/2; and the gathered weight, w.
  CHECK(found.ranks[0].peak_memory == uint64_t{4096} * 4096 * 13 / 2);
  // All 4 samples at once: half of the exchanges; 2 w and no sums yet, 4 inputs of w, a gradient of w, the weight.
  auto at_once = outcome_of("zero3", {4, 16, 4}, 4, lab_costs());
  const double longer_pass = 137'438'953'472 / (1000e12 * 0.95);
  CHECK(near(at_once.end, 4 * load + (8 + 4) * exchange + 2 * 4 * longer_pass + 4 * update));
  CHECK(at_once.ranks[0].peak_memory == uint64_t{4096} * 4096 * 8);
}

TEST_CASE("strategies: ddp with micro-batches is ddp-accumulate, but for where its sums are reduced") {
  const model m{6, 24, 2};
  for (auto* costs : {&lab_costs(), &puzzle_costs()}) {
    auto reduced = outcome_of("ddp", m, 3, *costs, true), kept = outcome_of("ddp-accumulate", m, 3, *costs, true);
    CHECK(near(reduced.end, kept.end));
    CHECK(reduced.ranks[0].peak_memory <= kept.ranks[0].peak_memory);
    auto count = [](const training_outcome& x, op what) {
      return std::ranges::count_if(x.events, [&](auto& y) { return y.what == what; });
    };
    for (auto what : {op::forward, op::backward, op::all_reduce, op::update})
      CHECK(count(reduced, what) == count(kept, what));
  }
}

TEST_CASE("strategies: the default micro-batch is one sample, or all of a rank's") {
  const model m{8, 24, 1};
  CHECK(default_micro_batch(*strategy_of("zero3"), m, 4) == 6);
  CHECK(default_micro_batch(*strategy_of("ddp-accumulate"), m, 4) == 1);
  CHECK(default_micro_batch(*strategy_of("pipeline"), m, 4) == 24);
  CHECK(default_micro_batch(*strategy_of("1f1b"), m, 4) == 1);
}

TEST_CASE("strategies: any number of ranks, layers and batches trains the whole model, or is refused with a sentence") {
  std::mt19937_64 random{std::random_device{}()};
  auto seed = random();
  CAPTURE(seed);
  random.seed(seed);
  auto& lab = lab_costs();
  for (int round = 0; round < 100; ++round)
    for (auto& which : strategies()) {
      auto world_size = static_cast<uint32_t>(1 + random() % 9);
      model m{static_cast<uint32_t>(1 + random() % 12), 1 + random() % 30, 1 + random() % 7,
              static_cast<uint32_t>(1 + random() % 4)};
      CAPTURE(which.name);
      CAPTURE(world_size);
      CAPTURE(m.layers);
      CAPTURE(m.global_batch);
      CAPTURE(m.micro_batch);
      if (auto refused = which.check(m, world_size)) {
        CHECK(code_of(refused) == errc::invalid_argument);
        continue;
      }
      auto found = outcome_of(which.name, m, world_size, lab);
      for (auto& each : found.ranks)
        CHECK(found.end >= each.compute + each.communication - 1e-12);
      CHECK(found.time <= found.end);
      CHECK(found.bubble_fraction <= 1);
    }
}

TEST_CASE("strategies: the bubble of GPipe and 1F1B is (p-1)/(m+p-1), and 1F1B holds p micro-batches") {
  stages_only costs;
  for (uint32_t p : {2, 3, 4, 8})
    for (uint64_t m : {1, 2, 4, 8, 13, 32}) {
      CAPTURE(p);
      CAPTURE(m);
      auto flushed = outcome_of("gpipe", {p, m, 1}, p, costs), taken_in_turn = outcome_of("1f1b", {p, m, 1}, p, costs);
      auto bubble = (p - 1.0) / (static_cast<double>(m) + p - 1.0);
      CHECK(std::abs(flushed.bubble_fraction - bubble) < 1e-12);
      CHECK(std::abs(taken_in_turn.bubble_fraction - bubble) < 1e-12);
      for (uint32_t r = 0; r < p; ++r) { // the inputs that wait for their backward, and an output
        CHECK(flushed.ranks[r].peak_memory >= m);
        CHECK(taken_in_turn.ranks[r].peak_memory <= std::min<uint64_t>(p - r, m) + 1);
      }
    }
}

TEST_CASE("strategies: the bubble of interleaved 1F1B is (p-1)/(v m) of the ideal time") {
  stages_only costs;
  for (uint32_t p : {2, 4, 8})
    for (uint32_t v : {2, 3, 4})
      for (uint64_t m : {p, 2 * p, 4 * p}) {
        CAPTURE(p);
        CAPTURE(v);
        CAPTURE(m);
        auto found = outcome_of("interleaved", {p * v, m, 1, v}, p, costs);
        auto ideal = static_cast<double>(m * v) * 3;
        CHECK(std::abs((found.end - ideal) / ideal - (p - 1.0) / static_cast<double>(v * m)) < 1e-12);
      }
}

TEST_CASE("strategies: the bubble of ZB-H1 is (p-1)(F+B-W), where 1F1B's is (p-1)(F+B+W)") {
  stages_only costs;
  for (double weight : {1.0, 0.75})
    for (uint32_t p : {2, 3, 4, 8})
      for (uint64_t m : {p, 2 * p, 4 * p + 1}) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(weight);
        costs.by_weight = weight;
        auto ideal = static_cast<double>(m) * (2 + weight);
        CHECK(std::abs(outcome_of("zb-h1", {p, m, 1}, p, costs).end - ideal - (p - 1) * (2 - weight)) < 1e-12);
        CHECK(std::abs(outcome_of("1f1b", {p, m, 1}, p, costs).end - ideal - (p - 1) * (2 + weight)) < 1e-12);
      }
}

/// From a rank's first operation to its last one's end, the longest of all.
double longest_span(const training_outcome& found, uint32_t world_size) {
  std::vector<double> begin(world_size, HUGE_VAL), end(world_size, 0);
  for (auto& x : found.events)
    if (x.duration > 0) {
      begin[x.rank] = std::min(begin[x.rank], x.start);
      end[x.rank] = std::max(end[x.rank], x.start + x.duration);
    }
  double longest = 0;
  for (uint32_t r = 0; r < world_size; ++r)
    longest = std::max(longest, end[r] - begin[r]);
  return longest;
}

TEST_CASE(
  "strategies: a rank of ZB-H2 waits for (p-1)(F+B-2W) between its first and last operation, of ZB-V for nothing") {
  stages_only costs;
  for (double weight : {1.0, 0.75})
    for (uint32_t p : {2, 3, 4, 8})
      for (uint64_t m : {2 * p, 4 * p + 1}) {
        CAPTURE(p);
        CAPTURE(m);
        costs.by_weight = weight;
        auto ideal = static_cast<double>(m) * (2 + weight);
        CHECK(
          std::abs(longest_span(outcome_of("zb-h2", {p, m, 1}, p, costs, true), p) - ideal - (p - 1) * (2 - 2 * weight))
          < 1e-9);
      }
  costs.by_weight = 1;
  for (uint32_t p : {2, 3, 4, 8})
    for (uint64_t m : {2 * p - 1, 3 * p}) {
      auto found = outcome_of("zb-v", {2 * p, m, 1}, p, costs, true);
      CHECK(longest_span(found, p) == static_cast<double>(m) * 6); // two stages a rank
      for (auto& each : found.ranks)
        CHECK(each.peak_memory <= 2 * p + 1); // p micro-batches in each of two stages, and an output
    }
}

TEST_CASE("strategies: the bubble of DualPipe is (p/2-1)(F&B + B - 3W), a rank doing one after the other") {
  stages_only costs;
  for (uint32_t p : {2, 4, 8})
    for (uint64_t m : {2 * p, 4 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      auto found = outcome_of("dualpipe", {p, m, 1}, p, costs);
      const double forward = 1, backward = 2, weight = 1;
      const auto bubble = (p / 2 - 1) * (forward + backward + backward - 3 * weight);
      CHECK(std::abs(found.end - static_cast<double>(m) * 3 - bubble) < 1e-12);
      for (auto& each : found.ranks)
        CHECK(each.peak_memory <= p + 1 + 2); // and an output each way
    }
}

TEST_CASE("strategies: no step is shorter than its work, shared by all, nor than one sample's way through the model") {
  std::mt19937_64 random{std::random_device{}()};
  auto seed = random();
  CAPTURE(seed);
  random.seed(seed);
  stages_only costs;
  for (int round = 0; round < 40; ++round)
    for (auto& which : strategies()) {
      auto world_size = static_cast<uint32_t>(1 + random() % 12);
      model m{static_cast<uint32_t>(1 + random() % 24),
              1 + random() % 48,
              1 + random() % 4,
              static_cast<uint32_t>(1 + random() % 3),
              static_cast<uint32_t>(random() % 3),
              static_cast<uint32_t>(random() % 3),
              random() % 2 == 0,
              static_cast<uint32_t>(random() % 4)};
      CAPTURE(which.name);
      CAPTURE(world_size);
      if (which.check(m, world_size))
        continue;
      const auto shape = which.shape(m, world_size);
      CHECK(shape.size() == world_size);
      auto found = outcome_of(which.name, m, world_size, costs);
      CHECK(found.end >= 2.0 * m.layers + 1 - 1e-9); // what is by the weights may be done beside
      const auto part = m.global_batch / shape.data,
                 passes = which.cut == batch_cut::never ? 1 : (part - 1) / m.micro_batch + 1;
      CHECK(found.end >= 3.0 * static_cast<double>(passes) * m.layers / shape.pipeline - 1e-9);
    }
}

TEST_CASE("strategies: the same input gives the same outcome") {
  for (auto* name : {"1f1b", "zb-v", "3d", "ddp-overlap", "dualpipe"}) {
    const model m{8, 32, 2, 2, 1, 1};
    auto a = outcome_of(name, m, 4, lab_costs(), true), b = outcome_of(name, m, 4, lab_costs(), true);
    REQUIRE(a.events.size() == b.events.size());
    for (size_t i = 0; i < a.events.size(); ++i)
      CHECK((a.events[i].start == b.events[i].start && a.events[i].rank == b.events[i].rank
             && a.events[i].memory == b.events[i].memory));
  }
}

TEST_CASE("strategies: what goes on aside is waited for in virtual time, and must be waited for") {
  const model m{1, 2, 1};
  auto step = [](bool waits) {
    return [waits](rank& self) -> strategy {
      auto [w, state] = co_await self.load_weights(0);
      auto x = co_await self.input({self.index(), self.index() + 1});
      auto y = co_await self.forward(x, w);
      auto [gradient, rest] = co_await self.backward(x, w, co_await self.loss(y));
      auto reduced = self.aside(self.all_reduce(std::move(gradient)));
      auto z = co_await self.forward(x, w); // beside it
      if (!waits)
        co_return;
      auto sum = co_await std::move(reduced);
      co_await self.update(w, state, std::move(sum));
      co_await self.finish(std::move(w));
    };
  };
  auto found = simulate(step(true), m, 2, puzzle_costs(), true);
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  CHECK(found->end == 1 + 1 + 1 + 0.5); // 0.3 of the all_reduce are hidden behind the second forward
  CHECK(error_of(step(false), m, 2).find("has never waited for its all_reduce of the gradient by the weight of layer 0")
        != std::string::npos);
}

TEST_CASE("strategies: a cycle through the second streams is reported, too") {
  const model m{2, 4, 2};
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto arrives = self.aside(self.receive<activation>(1 - self.index()));
            auto x = co_await std::move(arrives);
          },
          m, 2)
        == "rank 0 waits for rank 1 to send it an activation aside, rank 1 waits for rank 0 to send it an activation "
           "aside: none of them can go on");
  CHECK(
    error_of(
      [](rank& self) -> strategy {
        if (self.index() == 1)
          co_return;
        auto [w, state] = co_await self.load_weights(0, {0, 2});
        auto first = self.aside(self.all_gather(w));
        auto second = self.aside(self.all_gather(w)); // after the first
        auto whole = co_await std::move(second);
        whole = co_await std::move(first);
      },
      m, 2)
    == "rank 0 waits for rank 1 to call all_gather of the weight of layer 0, step 0, shard 0 of 2, which has ended");
}

TEST_CASE("strategies: what is off-loaded takes no memory, and is fetched before it is used") {
  const model m{1, 1, 1};
  auto held = [&](bool offloads) {
    auto found = simulate(
      [offloads](rank& self) -> strategy {
        auto [w, state] = co_await self.load_weights(0);
        if (offloads)
          state = co_await self.offload(std::move(state));
        auto x = co_await self.input({0, 1});
        auto y = co_await self.forward(x, w);
        auto [gradient, rest] = co_await self.backward(x, w, co_await self.loss(y));
        y.drop();
        x.drop();
        rest.drop();
        if (offloads)
          state = co_await self.fetch(std::move(state));
        co_await self.update(w, state, std::move(gradient));
        co_await self.finish(std::move(w));
      },
      m, 1, puzzle_costs());
    REQUIRE_MESSAGE(found.engaged(), render(found.error()));
    return found->ranks[0].peak_memory;
  };
  CHECK(held(true) < held(false));
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            w = co_await self.offload(std::move(w));
            auto x = co_await self.input({0, 1});
            co_await self.forward(x, w);
          },
          m, 1)
        == "rank 0, forward: the weight of layer 0, step 0, on the host is to be fetched first");
}

TEST_CASE("strategies: a summand is no output, and a group's ranks must be its own") {
  const model m{1, 1, 1};
  auto shared = [](auto then) {
    return [then](rank& self) -> strategy {
      auto [w, state] = co_await self.load_weights(0, {}, {}, {self.index(), 2});
      auto x = co_await self.input({0, 1});
      auto y = co_await self.forward(x, w);
      co_await then(self, y);
    };
  };
  CHECK(error_of(shared([](rank& self, activation& y) { return self.loss(y); }), m, 2)
        == "rank 0, loss: it needs the whole, and has the input of layer 1, samples 0, summand 0 of 2");
  CHECK(error_of(shared([](rank& self, activation& y) {
                   return self.all_reduce(std::move(y), {0, 3, 1});
                 }),
                 m, 2)
        == "rank 0, all_reduce: a group of 3 ranks from rank 0 in steps of 1 is none of the 2 ranks there are");
  CHECK(error_of(shared([](rank& self, activation& y) {
                   return self.all_reduce(std::move(y), {1, 1, 1});
                 }),
                 m, 2)
        == "rank 0, all_reduce: it is none of the group's ranks, 1 from rank 1 in steps of 1");
}

TEST_CASE("strategies: the lines of a box are its groups") {
  const mesh shape{2, 3, 4};
  const uint32_t sides[] = {2, 3, 4};
  for (uint32_t rank = 0; rank < shape.size(); ++rank) {
    CHECK(line(sides, 0, rank) == shape.tensor_group(rank));
    CHECK(line(sides, 1, rank) == shape.data_group(rank));
    CHECK(line(sides, 2, rank).index_of(rank) == shape.stage(rank));
    for (size_t axis = 0; axis < 3; ++axis)
      CHECK(line(sides, axis, rank).contains(rank));
  }
  CHECK(line(sides, 2, 7) == group{1, 4, 6});
}

TEST_CASE("strategies: a forward may be run again from an input that was kept") {
  auto peak = [](bool again) {
    auto found = simulate(
      [again](rank& self) -> strategy {
        std::vector<weight> w(3);
        std::vector<optimizer_state> states(3);
        for (uint32_t l = 0; l < 3; ++l)
          std::tie(w[l], states[l]) = co_await self.load_weights(l);
        std::vector<activation> x(4);
        x[0] = co_await self.input({0, 64});
        for (uint32_t l = 0; l < 3; ++l) {
          x[l + 1] = co_await self.forward(x[l], w[l]);
          if (again && l > 0)
            x[l].drop();
        }
        auto by_output = co_await self.loss(x[3]);
        x[3].drop();
        for (uint32_t l = 3; l-- > 0;) {
          for (uint32_t k = 0; again && k < l; ++k) {
            x[k + 1] = co_await self.forward(x[k], w[k]);
            if (k > 0)
              x[k].drop();
          }
          weight_gradient gradient;
          std::tie(gradient, by_output) = co_await self.backward(x[l], w[l], by_output);
          x[l > 0 ? l : 3].drop();
          co_await self.update(w[l], states[l], std::move(gradient));
          co_await self.finish(std::move(w[l]));
        }
      },
      {3, 64, 64}, 1, puzzle_costs());
    REQUIRE_MESSAGE(found.engaged(), render(found.error()));
    return std::pair{found->ranks[0].peak_memory, found->end};
  };
  CHECK(peak(true).first < peak(false).first);
  CHECK(peak(true).second == peak(false).second + 3 * 64); // layer 0 twice more, layer 1 once
}

TEST_CASE("strategies: broadcast copies the root's, all_to_all turns sequence shards into column shards") {
  const model m{1, 1, 1};
  auto found = simulate(
    [](rank& self) -> strategy {
      weight w;
      optimizer_state state;
      if (self.index() == 0)
        std::tie(w, state) = co_await self.load_weights(0);
      auto copy = co_await self.broadcast(w, 0, self.world());
      w.drop();
      auto x = co_await self.input({0, 1});
      auto mine = co_await self.slice(std::move(x), {self.index(), 2});
      mine = co_await self.all_to_all(std::move(mine), self.world());
      CHECK(mine.tag().has == form::columns);
      mine = co_await self.all_to_all(std::move(mine), self.world());
      x = co_await self.all_gather(mine, self.world());
      auto y = co_await self.forward(x, copy);
      auto [gradient, rest] = co_await self.backward(x, copy, co_await self.loss(y));
      if (self.index() == 0) {
        co_await self.update(copy, state, std::move(gradient));
        co_await self.finish(std::move(copy));
      }
    },
    m, 2, puzzle_costs());
  CHECK_MESSAGE(found.engaged(), render(found.error()));
}

TEST_CASE("strategies: wrong operations are refused with the rank, the operation and what was missing") {
  model m{2, 4, 2};
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0, {1, 4});
            auto x = co_await self.input({0, 4});
            co_await self.forward(x, w);
          },
          m, 1)
        == "rank 0, forward: it needs the whole, and has the weight of layer 0, step 0, shard 1 of 4");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(1);
            auto x = co_await self.input({0, 4});
            co_await self.forward(x, w);
          },
          m, 1)
        == "rank 0, forward: the input of layer 0, samples 0-3 is not for the weight of layer 1, step 0");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto x = co_await self.input({0, 2});
            co_await self.loss(x);
          },
          m, 1)
        == "rank 0, loss: the input of layer 0, samples 0-1 is not the output of the last layer, 1");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(0);
            co_await self.update(w, state, weight_gradient{});
          },
          m, 1)
        == "rank 0, update: its gradient has been dropped or given away");
  CHECK(error_of([](rank& self) -> strategy { co_await self.load_weights(2); }, m, 1)
        == "rank 0, load_weights: there is no layer 2, only 0 to 1");
  CHECK(error_of([](rank&) -> strategy { co_return; }, m, 1)
        == "no rank has finished the weight of layer 0: update it, and finish it");
}

TEST_CASE("strategies: shards make the whole layer in any order in which they are finished, and only all of them") {
  model m{1, 4, 1};
  constexpr uint32_t nobody = 4;
  auto in_turn_from_the_last = [](uint32_t idle) {
    return [idle](rank& self) -> strategy {
      auto [w, state] = co_await self.load_weights(0, {self.index(), self.world_size()});
      auto x = co_await self.input({self.index(), self.index() + 1});
      auto whole = co_await self.all_gather(w);
      auto y = co_await self.forward(x, whole);
      auto [gradient, rest] = co_await self.backward(x, whole, co_await self.loss(y));
      auto sum = co_await self.reduce_scatter(std::move(gradient));
      co_await self.update(w, state, std::move(sum));
      if (!self.last())
        co_await self.receive<activation>(self.next());
      if (self.index() != idle)
        co_await self.finish(std::move(w));
      if (!self.first())
        co_await self.send(self.previous(), x);
    };
  };
  CHECK(simulate(in_turn_from_the_last(nobody), m, 4, lab_costs()).engaged());
  for (uint32_t idle : {0, 1, 3})
    CHECK(error_of(in_turn_from_the_last(idle), m, 4)
          == "no rank has finished the whole weight of layer 0: update it, and finish it");
}

TEST_CASE("strategies: of values that do not belong together it is said which one, and what is needed") {
  model m{2, 4, 2};
  auto of_another_layer = [](rank& self) -> strategy {
    auto [w, state] = co_await self.load_weights(0);
    auto [above, its_state] = co_await self.load_weights(1);
    auto x = co_await self.input({0, 4});
    auto y = co_await self.forward(x, w);
    auto z = co_await self.forward(y, above);
    auto [gradient, rest] = co_await self.backward(y, above, co_await self.loss(z));
    co_await self.update(w, state, std::move(gradient));
  };
  CHECK(
    error_of(of_another_layer, m, 1)
    == "rank 0, update: the gradient by the weight of layer 1, samples 0-3 does not fit the weight of layer 0, step 0: "
       "it must be of layer 0");
  auto sliced = [](rank& self) -> strategy {
    auto [w, state] = co_await self.load_weights(0);
    auto [above, its_state] = co_await self.load_weights(1);
    auto x = co_await self.input({0, 4});
    auto y = co_await self.forward(x, w);
    auto z = co_await self.forward(y, above);
    auto [gradient, rest] = co_await self.backward(y, above, co_await self.loss(z));
    auto quarter = co_await self.slice(std::move(gradient), {1, 4});
    co_await self.update(above, its_state, std::move(quarter));
  };
  CHECK(
    error_of(sliced, m, 1)
    == "rank 0, update: the gradient by the weight of layer 1, samples 0-3, shard 1 of 4 does not fit the weight of "
       "layer 1, step 0: it is shard 1 of 4 and must be the whole: gather, scatter or slice one of them");
}

TEST_CASE("strategies: an exception ends the run with its text") {
  CHECK(error_of(
          [](rank&) -> strategy {
            throw std::runtime_error{"out of range"};
            co_return;
          },
          {1, 1, 1}, 1)
        == "a strategy has thrown an exception, the latest operation being rank 0's: out of range");
}

TEST_CASE("strategies: a sum that is incomplete, or counts a sample twice, is refused") {
  model m{1, 4, 2};
  auto half = [](bool same) {
    return [same](rank& self) -> strategy {
      auto [w, state] = co_await self.load_weights(0);
      weight_gradient sum;
      for (int i = 0; i < 2; ++i) {
        auto x = co_await self.input(same || i == 0 ? range{0, 2} : range{2, 3});
        auto y = co_await self.forward(x, w);
        auto [gradient, rest] = co_await self.backward(x, w, co_await self.loss(y));
        co_await self.add(sum, std::move(gradient));
      }
      co_await self.update(w, state, std::move(sum));
    };
  };
  CHECK(
    error_of(half(true), m, 1)
    == "rank 0, add: the gradient by the weight of layer 0, samples 0-1 would count twice: the sum has samples 0-1");
  CHECK(error_of(half(false), m, 1) == "rank 0, update: the gradient is incomplete: it has samples 0-2 of 0-3");
}

TEST_CASE("strategies: ranks that call different collectives, or wait in a circle, get an error at once") {
  model m{2, 4, 2};
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto [w, state] = co_await self.load_weights(self.index(), {self.index(), 2});
            co_await self.all_gather(w);
          },
          m, 2)
        == "the ranks' collectives do not match: rank 0 calls all_gather of the weight of layer 0, step 0, shard 0 of "
           "2, rank 1 "
           "all_gather of the weight of layer 1, step 0, shard 1 of 2");
  CHECK(error_of([](rank& self) -> strategy { co_await self.receive<activation>((self.index() + 1) % 3); }, m, 3)
        == "rank 0 waits for rank 1 to send it an activation, rank 1 waits for rank 2 to send it an activation, "
           "rank 2 waits for rank 0 to send it an activation: none of them can go on");
  CHECK(error_of(
          [](rank& self) -> strategy {
            if (self.index() == 0)
              co_await self.receive<activation>(1);
          },
          m, 2)
        == "rank 0 waits for rank 1 to send it an activation, which has ended");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto x = co_await self.input({0, 2});
            if (self.index() == 0)
              co_await self.send(1, x);
          },
          m, 2)
        == "rank 1 has ended without receiving what rank 0 sent: the input of layer 0, samples 0-1");
  CHECK(error_of(
          [](rank& self) -> strategy {
            auto x = co_await self.input({0, 2});
            if (self.index() == 0)
              co_await self.send(1, x);
            else
              co_await self.receive<activation_gradient>(0);
          },
          m, 2)
        == "rank 1 waits for rank 0 to send it an activation's gradient, which has ended");
}
