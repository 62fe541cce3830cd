#include "training/strategies/overlapped_sums.hpp"

namespace ringmaster::training {

strategy overlapped_sums::run_micro_batches(std::vector<weight>& weights, std::vector<handle<weight>> gathered) {
  const auto batches = micro_batches(model_, self_.index(), self_.world_size());
  std::vector<activation> inputs(model_.layers + 1);
  for (auto samples : batches) {
    inputs[0] = co_await self_.input(samples);
    for (uint32_t l = 0; l < model_.layers; ++l) {
      if (!gathered.empty() && gathered[l].valid())
        weights[l] = co_await std::move(gathered[l]);
      inputs[l + 1] = co_await self_.forward(inputs[l], weights[l]);
    }
    co_await run_backward(inputs, weights, samples == batches.back());
  }
}

strategy overlapped_sums::run_backward(std::vector<activation>& inputs, const std::vector<weight>& weights,
                                       bool is_last) {
  auto by_output = co_await self_.loss(inputs[model_.layers]);
  inputs[model_.layers].drop();
  auto bucket_end = model_.layers;
  for (uint32_t l = model_.layers; l-- > 0;) {
    weight_gradient gradient;
    std::tie(gradient, by_output) = co_await self_.backward(inputs[l], weights[l], by_output);
    inputs[l].drop();
    co_await self_.add(own_[l], std::move(gradient));
    if (!is_last || (bucket_end - l < model_.parallel.chunks && l > 0))
      continue;
    while (bucket_end > l) {
      auto& own = own_[--bucket_end];
      sums_[bucket_end] = self_.aside(scatters_ ? self_.reduce_scatter(std::move(own))
                                                : self_.all_reduce(std::move(own)));
    }
  }
}

} // namespace ringmaster::training
