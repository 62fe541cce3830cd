// Tensor, context, expert, data and pipeline ranks in one program, and programs that cheat with what they share.
#include "tests/training/language/refused_run.hpp"
#include "tests/training/language/strategy_outcome.hpp"

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

struct rank_box {
  uint32_t tensor = 1, context = 1, data = 1, pipeline = 1, chunks = 1, experts = 1;
  bool in_sequence = false;

  uint32_t ranks() const { return tensor * context * data * pipeline; }
};

/// Of 8 layers and samples.
model boxed_model(const rank_box& x) {
  model m{8, 8, 1, x.chunks, x.tensor, x.data};
  m.sequence_parallel = x.in_sequence;
  m.context = x.context;
  m.experts = x.experts;
  return m;
}

/// Two ranks that share a layer's columns times two that share positions, one layer.
std::string refusal_of_four(const strategy_function& program) {
  return error_of(program, {1, 2, 2}, 4);
}

/// Its positions of both samples, cut in four.
task<activation> quarter(rank& self) {
  auto x = co_await self.slice(co_await self.input({0, 2}), {self.index() / 2, 2});
  co_return co_await self.slice(std::move(x), {self.index() % 2, 2});
}

} // namespace

TEST_CASE("all sides: every box of ranks trains the whole model once") {
  uint32_t trained = 0;
  for (uint32_t tensor : {1, 2})
    for (uint32_t context : {1, 2, 4})
      for (uint32_t data : {1, 2})
        for (uint32_t chunks : {1, 2})
          for (uint32_t experts : {1, 2, 4, 8})
            for (auto [in_sequence, zero] : {std::pair{false, 0u}, {false, 1u}, {true, 0u}, {true, 1u}}) {
              const rank_box x{tensor, context, data, 2, chunks, experts, in_sequence && tensor > 1};
              auto m = boxed_model(x);
              m.zero = zero;
              if (strategy_of("3d")->check(m, x.ranks()))
                continue;
              CAPTURE(tensor);
              CAPTURE(context);
              CAPTURE(data);
              CAPTURE(experts);
              CAPTURE(zero);
              outcome_of("3d", m, x.ranks(), lab_costs());
              ++trained;
            }
  CHECK(trained == 280);
}

TEST_CASE("all sides: with one of them it is that side's strategy") {
  auto same = [](const rank_box& x, std::string_view name) {
    auto found = outcome_of("3d", boxed_model(x), x.ranks(), lab_costs());
    auto by_itself = outcome_of(name, boxed_model(x), x.ranks(), lab_costs());
    CHECK(found.end == by_itself.end);
    CHECK(peak_memory_of(found) == peak_memory_of(by_itself));
  };
  same({.context = 4}, "context");
  same({.context = 2, .data = 2}, "context");
  same({.pipeline = 4}, "1f1b");
  same({.tensor = 2, .data = 2, .pipeline = 2}, "1f1b");
  same({.tensor = 2, .pipeline = 4, .chunks = 2}, "interleaved");
}

TEST_CASE("all sides: experts take their share of every sample, for all axes of their ranks") {
  // Where no other micro-batch hides the way to experts it is the strategy that does that.
  auto m = boxed_model({.data = 4, .experts = 4});
  m.micro_batch = 2;
  const auto along_data = outcome_of("3d", m, 4, lab_costs());
  CHECK(along_data.end == outcome_of("expert", m, 4, lab_costs()).end);
  // A position takes as long wherever it comes from; sums and keys are others.
  auto compute_of = [](const rank_box& x) {
    return outcome_of("3d", boxed_model(x), x.ranks(), puzzle_costs()).ranks[0].compute;
  };
  const auto each = compute_of({.data = 4, .experts = 4});
  CHECK(compute_of({.data = 4, .experts = 2}) == each);
  CHECK(compute_of({.tensor = 2, .data = 2, .experts = 4}) == each);
  CHECK(compute_of({.tensor = 4, .experts = 2}) == each);
  CHECK(compute_of({.tensor = 4, .experts = 4, .in_sequence = true}) == each);
}

TEST_CASE("all sides: what is gathered of sequence shards is one, or the whole") {
  CHECK(refusal_of_four([](rank& self) -> strategy {
          auto x = co_await quarter(self);
          auto y = co_await self.all_gather(x, {self.index() % 2, 2, 2});
        })
        == "rank 2, all_gather: the input of layer 0, samples 0-1, sequence shard 2 of 4 is not part 1 of 2 of what "
           "the ranks have: rank 0 has the input of layer 0, samples 0-1, sequence shard 0 of 4");
  CHECK(refusal_of_four([](rank& self) -> strategy {
          auto x = co_await quarter(self);
          auto half = co_await self.all_gather(x, {self.index() / 2 * 2, 2, 1});
          CHECK(text_of(half.tag())
                == fmt::format("input of layer 0, samples 0-1, sequence shard {} of 2", self.index() / 2));
          auto y = co_await self.loss(half);
        })
        == "rank 1, loss: the input of layer 0, samples 0-1, sequence shard 0 of 2 is not the output of the last "
           "layer, 0");
}

TEST_CASE("all sides: sequence shards that are gathered are of the same samples, and attended to the same keys") {
  CHECK(refusal_of_four([](rank& self) -> strategy {
          const auto sample = self.index() % 2;
          auto x = co_await self.slice(co_await self.input({sample, sample + 1}), {self.index(), 4});
          auto half = co_await self.all_gather(x, {self.index() / 2 * 2, 2, 1});
        })
        == "rank 1, all_gather: the input of layer 0, samples 1, sequence shard 1 of 4 is not part 1 of 2 of what the "
           "ranks have: rank 0 has the input of layer 0, samples 0, sequence shard 0 of 4");
  CHECK(refusal_of_four([](rank& self) -> strategy {
          auto x = co_await quarter(self);
          auto [w, state] = co_await self.load_weights(0);
          auto keys = co_await self.keys(x, w);
          auto made = co_await self.attend(x, keys);
          auto half = co_await self.all_gather(made, {self.index() / 2 * 2, 2, 1});
        })
        == "rank 1, all_gather: the attention of layer 0, samples 0-1, sequence shard 1 of 4, to positions 1 of 4 is "
           "not part 1 of 2 of what the ranks have: rank 0 has the attention of layer 0, samples 0-1, sequence shard 0 "
           "of 4, to positions 0 of 4");
}

TEST_CASE("all sides: a tensor shard's attention is for its columns") {
  CHECK(refusal_of_four([](rank& self) -> strategy {
          auto x = co_await self.slice(co_await self.input({0, 2}), {self.index() / 2, 2});
          auto [w, state] = co_await self.load_weights(0, {}, {}, {self.index() % 2, 2});
          auto [other, its_state] = co_await self.load_weights(0, {}, {}, {1 - self.index() % 2, 2});
          auto keys = co_await self.all_gather(co_await self.keys(x, w), {self.index() % 2, 2, 2});
          auto made = co_await self.attend(x, keys);
          auto y = co_await self.forward(x, other, std::move(made));
        })
        == "rank 2, forward: the attention of layer 0, samples 0-1, sequence shard 1 of 2, tensor shard 0 of 2, to all "
           "positions and the weight of layer 0, step 0, tensor shard 1 of 2 are of other tensor shards of the layer");
  CHECK(refusal_of_four([](rank& self) -> strategy {
          auto x = co_await self.slice(co_await self.input({0, 2}), {self.index() / 2, 2});
          auto [w, state] = co_await self.load_weights(0, {}, {}, {self.index() % 2, 2});
          auto keys = co_await self.keys(x, w);
          auto all = co_await self.all_gather(keys, {self.index() / 2 * 2, 2, 1}); // of the same positions
        })
        == "rank 1, all_gather: the keys of layer 0, samples 0-1, sequence shard 0 of 2, tensor shard 1 of 2 does not "
           "go with the keys of layer 0, samples 0-1, sequence shard 0 of 2, tensor shard 0 of 2 of rank 0");
}

TEST_CASE("all sides: positions go to experts side by side, and each rank's own come back") {
  CHECK(refusal_of_four([](rank& self) -> strategy {
          auto x = co_await quarter(self);
          auto routed = co_await self.dispatch(std::move(x), {self.index() % 2, 2, 2});
        })
        == "rank 2, all_to_all: the input of layer 0, samples 0-1, sequence shard 2 of 4 does not go on where rank 0 "
           "ends, which has the input of layer 0, samples 0-1, sequence shard 0 of 4");
  auto asks = [](shard of_first) {
    return refusal_of_four([=](rank& self) -> strategy {
      const group pair{self.index() / 2 * 2, 2, 1};
      auto [w, state] = co_await self.load_experts(0, {self.index() % 2, 2});
      auto x = co_await quarter(self);
      auto routed = co_await self.dispatch(std::move(x), pair);
      auto y = co_await self.forward(routed, w);
      auto mine = co_await self.combine(std::move(y), {0, 2}, pair, self.first() ? of_first : shard{self.index(), 4});
      auto gradient = co_await self.loss(mine);
      gradient = co_await self.dispatch(std::move(gradient), pair);
      auto [by_weight, by_input] = co_await self.backward(routed, w, gradient);
      co_await self.update(w, state, std::move(by_weight));
    });
  };
  CHECK(asks({2, 4})
        == "rank 0, all_to_all: the ranks ask for samples 0-1, positions 1 to 2 of 4, and these are 0-1, positions 0 "
           "to 1 of 4");
  // A sum of the positions that one pair has is none of the samples.
  CHECK(asks({0, 4}).find("it is by positions 0 to 1 of 4 and must be by all positions") != std::string::npos);
}

TEST_CASE("all sides: impossible sharing is refused with the reason") {
  auto refused = [](const rank_box& x, uint32_t zero = 0) {
    auto m = boxed_model(x);
    m.zero = zero;
    return render(strategy_of("3d")->check(m, x.ranks()));
  };
  CHECK(refused({.tensor = 2, .context = 2, .experts = 8})
        == "4 ranks of a stage cannot be groups of 8 that share experts: --experts must divide tensor 2 x context 2 x "
           "data 1");
  CHECK(refused({.tensor = 3, .data = 2, .experts = 2})
        == "2 ranks that share experts are neither a part nor a multiple of the 3 that share a sample's positions, "
           "tensor 3 x context 1");
  CHECK(refused({.context = 2, .data = 2}, 2)
        == "with --context or --experts each rank has its stage's weights whole: --zero is 0 or 1");
  auto m = boxed_model({.context = 3});
  CHECK(render(strategy_of("3d")->check(m, 4))
        == "4 ranks are no groups of 3 that share positions: --context must divide them");
}
