// Tensor parallel (Shoeybi et al., Megatron-LM, 2019): T ranks share every layer, whose first matrix is cut by
// columns and whose second by rows, so that each makes a summand of the output and one all_reduce makes it whole;
// another one makes the gradient whole on the way back. With sequence parallelism (Korthikanti et al. 2022) the
// ranks share the positions between layers: an all_gather before and a reduce_scatter after each layer, which move
// as many bytes, and 1/T of the activations.
// Groups of T ranks are data parallel to each other.
// Time: 1/T of forward, backward and update; 2 L all_reduces of activations a micro-batch, and L of gradients of 1/T
// of a layer.
// Memory: 3/T weights a layer; activations of one micro-batch.
#include "training/strategies/tensor_parallel.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

mesh tensor_parallel_shape(const model& m, uint32_t world_size) {
  const auto tensor = m.parallel.tp != 0 ? m.parallel.tp : world_size / std::max(m.parallel.dp, 1u);
  return {tensor, world_size / std::max(tensor, 1u), 1};
}

namespace {

/// From what a rank has between layers to the whole, and from a layer's summands back to it.
class between_layers {
public:
  between_layers(rank& self, const model& m, group tensor)
    : self_(self), tensor_(tensor), in_sequence_(m.parallel.sequence_parallel) {}

  template <class Value>
  task<Value> keep(Value x) {
    if (in_sequence_ && tensor_.count > 1)
      x = co_await self_.slice(std::move(x), {tensor_.index_of(self_.index()), tensor_.count});
    co_return std::move(x);
  }
  template <class Value>
  task<Value> whole(const Value& x) {
    co_return co_await self_.all_gather(x, tensor_);
  }
  template <class Value>
  task<Value> sum(Value summand) {
    if (tensor_.count == 1)
      co_return std::move(summand);
    if (in_sequence_)
      co_return co_await self_.reduce_scatter(std::move(summand), tensor_);
    co_return co_await self_.all_reduce(std::move(summand), tensor_);
  }
  bool shards() const { return in_sequence_ && tensor_.count > 1; }

private:
  rank& self_;
  group tensor_;
  bool in_sequence_;
};

strategy run_tensor_parallel(rank& self, const model& m) {
  const auto shape = tensor_parallel_shape(m, self.world_size());
  const auto tensor = shape.tensor_group(self.index()), data = shape.data_group(self.index());
  between_layers between{self, m, tensor};
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<weight_gradient> sums(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l, {}, {},
                                                                 {shape.tensor_index(self.index()), shape.tensor});

  for (auto samples : micro_batches(m, shape.data_index(self.index()), shape.data)) {
    inputs[0] = co_await between.keep(co_await self.input(samples));
    for (uint32_t l = 0; l < m.layers; ++l) {
      activation all;
      if (between.shards())
        all = co_await between.whole(inputs[l]);
      auto summand = co_await self.forward(between.shards() ? all : inputs[l], weights[l]);
      all.drop();
      inputs[l + 1] = co_await between.sum(std::move(summand));
    }
    activation output;
    if (between.shards())
      output = co_await between.whole(inputs[m.layers]);
    auto by_output = co_await between.keep(co_await self.loss(between.shards() ? output : inputs[m.layers]));
    output.drop();
    inputs[m.layers].drop();
    for (uint32_t l = m.layers; l-- > 0;) {
      activation all;
      if (between.shards()) {
        all = co_await between.whole(inputs[l]);
        by_output = co_await between.whole(by_output);
      }
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self.backward(between.shards() ? all : inputs[l], weights[l], by_output);
      inputs[l].drop();
      all.drop();
      by_output = co_await between.sum(std::move(by_output));
      co_await self.add(sums[l], std::move(gradient));
    }
  }

  for (uint32_t l = 0; l < m.layers; ++l) {
    if (m.replicated && tensor.count > 1)
      sums[l] = co_await self.all_reduce(std::move(sums[l]), tensor);
    if (data.count > 1)
      sums[l] = co_await self.all_reduce(std::move(sums[l]), data);
    co_await self.update(weights[l], states[l], std::move(sums[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

} // namespace

caf::error check_tensor_parallel(const model& m, uint32_t world_size) {
  RETURN_ERROR(check_mesh(m, world_size));
  const auto shape = tensor_parallel_shape(m, world_size);
  if (shape.size() != world_size || (m.parallel.dp != 0 && m.parallel.dp != shape.data))
    return invalid(fmt::format("{} tensor-parallel ranks times {} data-parallel ones are not {} ranks", shape.tensor,
                               std::max(m.parallel.dp, 1u), world_size));
  return check_data_parallel(m, shape.data);
}

const known_strategy tensor_parallel{
  .name = "tensor",
  .what = "tensor parallel: ranks share each layer (--tensor, --sequence-parallel; the rest is data parallel)",
  .run = run_tensor_parallel,
  .check = check_tensor_parallel,
  .shape = tensor_parallel_shape,
  .shares = sharing::layers};

} // namespace ringmaster::training
