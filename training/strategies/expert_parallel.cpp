// Expert parallel (Lepikhin et al., GShard, 2020): every second layer, from the second on, is of experts, which
// --experts neighbours share; all ranks have other samples. A router sends each position to experts: an all_to_all
// takes it to their rank and another one brings back what they have made of it, in the backward the other way round.
// Micro-batches go through the model by twos: while one is on its way the other one is computed, as in DualPipe's
// blocks (DeepSeek-V3, 2024). A balanced router is assumed: a rank's experts get 1/E of all positions.
// Gradients by experts are of all samples of their E ranks, and are summed over the ranks that have the same experts.
// Where --experts is not given they are 8, or what of them divides the world.
// Time: load + forward and backward + what another micro-batch does not hide of 4 all_to_alls of activations a layer of
// experts and micro-batch + an all_reduce a layer, of experts over W/E ranks + update.
// Memory: 3 weights a layer, of which those of experts are 1/E of all experts; the activations of two micro-batches.
#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

/// A micro-batch on its way through the model and back.
struct passing_batch {
  passing_batch(range which, size_t layers) : samples(which), inputs(layers + 1) {}

  range samples;
  std::vector<activation> inputs; ///< By layer; after the last one the output.
  activation_gradient by_output;
  handle<activation> comes; ///< What the next layer takes, where it is on its way.
  handle<activation_gradient> gradient_comes;
};

class expert_parallel_rank {
public:
  expert_parallel_rank(rank& self, const model& m)
    : self_(self), model_(m), weights_(m.layers), states_(m.layers), sums_(m.layers) {
    const auto count = expert_ranks(m, self.world_size()), index = self.index() % count;
    sharers_ = {self.index() - index, count, 1};
    same_experts_ = {index, self.world_size() / count, count};
  }

  strategy run() {
    const shard mine{sharers_.index_of(self_.index()), sharers_.count};
    for (uint32_t l = 0; l < model_.layers; ++l)
      if (of_experts(l))
        std::tie(weights_[l], states_[l]) = co_await self_.load_experts(l, mine);
      else
        std::tie(weights_[l], states_[l]) = co_await self_.load_weights(l);
    const auto batches = micro_batches(model_, self_.index(), self_.world_size());
    for (size_t i = 0; i < batches.size(); i += 2) {
      std::vector<passing_batch> both;
      for (auto j = i; j < std::min(i + 2, batches.size()); ++j)
        both.emplace_back(batches[j], model_.layers);
      co_await forward(both);
      co_await backward(both);
    }
    co_await update();
  }

private:
  bool of_experts(uint32_t layer) const { return layer < model_.layers && is_of_experts(model_, layer); }

  strategy forward(std::vector<passing_batch>& both) {
    for (auto& x : both)
      x.inputs[0] = co_await self_.input(x.samples);
    for (uint32_t l = 0; l < model_.layers; ++l)
      for (auto& x : both) {
        if (x.comes.valid())
          x.inputs[l] = co_await std::move(x.comes);
        auto y = co_await self_.forward(x.inputs[l], weights_[l]);
        if (of_experts(l))
          x.comes = self_.aside(self_.combine(std::move(y), x.samples, sharers_));
        else if (of_experts(l + 1))
          x.comes = self_.aside(self_.dispatch(std::move(y), sharers_));
        else
          x.inputs[l + 1] = std::move(y);
      }
  }

  strategy backward(std::vector<passing_batch>& both) {
    for (auto& x : both) {
      auto& output = x.inputs.back();
      if (x.comes.valid())
        output = co_await std::move(x.comes);
      x.by_output = co_await self_.loss(output);
      output.drop();
      if (of_experts(model_.layers - 1))
        x.gradient_comes = self_.aside(self_.dispatch(std::move(x.by_output), sharers_));
    }
    for (auto l = model_.layers; l-- > 0;)
      for (auto& x : both) {
        if (x.gradient_comes.valid())
          x.by_output = co_await std::move(x.gradient_comes);
        auto [gradient, by_input] = co_await self_.backward(x.inputs[l], weights_[l], x.by_output);
        x.inputs[l].drop();
        x.by_output.drop();
        co_await self_.add(sums_[l], std::move(gradient));
        if (of_experts(l))
          x.gradient_comes = self_.aside(self_.combine(std::move(by_input), x.samples, sharers_));
        else if (l > 0 && of_experts(l - 1))
          x.gradient_comes = self_.aside(self_.dispatch(std::move(by_input), sharers_));
        else if (l > 0)
          x.by_output = std::move(by_input);
      }
  }

  strategy update() {
    for (uint32_t l = 0; l < model_.layers; ++l) {
      auto sum = std::move(sums_[l]);
      if (!of_experts(l))
        sum = co_await self_.all_reduce(std::move(sum));
      else if (same_experts_.count > 1)
        sum = co_await self_.all_reduce(std::move(sum), same_experts_);
      co_await self_.update(weights_[l], states_[l], std::move(sum));
      co_await self_.finish(std::move(weights_[l]));
    }
  }

  rank& self_;
  const model& model_;
  group sharers_, same_experts_;
  std::vector<weight> weights_;
  std::vector<optimizer_state> states_;
  std::vector<weight_gradient> sums_;
};

strategy run_expert_parallel(rank& self, const model& m) {
  expert_parallel_rank mine{self, m};
  co_await mine.run();
}

caf::error check_expert_parallel(const model& m, uint32_t world_size) {
  if (m.for_real)
    return invalid("ranks that share experts need layers of experts and a router; those that are trained here have "
                   "none: ringmaster simulate train simulates it");
  if (const auto count = expert_ranks(m, world_size); world_size % count != 0)
    return invalid(fmt::format("{} ranks are no groups of {} that share experts: --experts must divide them",
                               world_size, count));
  return check_data_parallel(m, world_size);
}

} // namespace

const known_strategy expert_parallel{
  .name = "expert",
  .what = "expert parallel: --experts ranks share the experts of every second layer, positions go to them and back",
  .run = run_expert_parallel,
  .check = check_expert_parallel,
  .needs = beyond::experts,
  .hides_sums = true,
  .keeps_sums = true};

} // namespace ringmaster::training
