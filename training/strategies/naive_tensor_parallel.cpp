// Tensor parallel as one writes it first: T ranks have some columns of each layer's weight, make these of its output of
// all of its input, and gather what they have made. Back, the gradient by the output is cut to the rank's columns, and
// those by the input, of which each has a summand, are reduced and scattered by columns. A compiler makes such programs
// of annotations (Xu et al., GSPMD, 2021). Groups of T ranks are data parallel to each other.
// Time: 1/T of forward, backward and update; L all_gathers and L - 1 reduce_scatters of activations a micro-batch,
// half of what Megatron's all_reduces move; but theirs are for a pair of matrices, where this needs them for each.
// Memory: 3/T weights a layer; activations of one micro-batch, whole.
#include "training/strategies/tensor_parallel.hpp"

namespace ringmaster::training {

namespace {

strategy run_naive_tensor_parallel(rank& self, const model& m) {
  const auto shape = tensor_parallel_shape(m, self.world_size());
  const auto tensor = shape.tensor_group(self.index()), data = shape.data_group(self.index());
  const shard mine{shape.tensor_index(self.index()), shape.tensor};
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> sums(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_columns(l, mine);

  for (auto samples : micro_batches(m, shape.data_index(self.index()), shape.data)) {
    inputs[0] = co_await self.input(samples);
    for (uint32_t l = 0; l < m.layers; ++l) {
      inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);
      if (!mine.whole())
        inputs[l + 1] = co_await self.all_gather(inputs[l + 1], tensor);
    }
    auto by_output = co_await self.loss(inputs[m.layers]);
    inputs[m.layers].drop();
    if (!mine.whole())
      by_output = co_await self.slice_columns(std::move(by_output), mine);
    for (uint32_t l = m.layers; l-- > 0;) {
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self.backward(inputs[l], weights[l], by_output);
      inputs[l].drop();
      if (!mine.whole() && l > 0) // the first layer needs no gradient by the samples
        by_output = co_await self.reduce_scatter_columns(std::move(by_output), tensor);
      co_await self.add(sums[l], std::move(gradient));
    }
  }

  for (uint32_t l = 0; l < m.layers; ++l) {
    if (data.count > 1)
      sums[l] = co_await self.all_reduce(std::move(sums[l]), data);
    co_await self.update(weights[l], states[l], std::move(sums[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace

const known_strategy naive_tensor_parallel{
  .name = "tensor-naive",
  .what = "ranks have columns of each layer and gather what they make (--tensor; the rest is data parallel)",
  .run = run_naive_tensor_parallel,
  .check = check_tensor_parallel,
  .shape = tensor_parallel_shape,
  .shares = sharing::layers,
  .by_columns = true};

} // namespace ringmaster::training
