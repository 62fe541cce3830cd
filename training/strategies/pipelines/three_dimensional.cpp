// All axes together (Narayanan et al., Megatron-LM, 2021; Grattafiori et al., Llama 3, 2024): the world is a box of
// tensor x context x data x pipeline ranks. Layers are shared along the first axis, positions along the second, samples
// along the third, stages along the fourth, in 1F1B's order, or interleaved where a rank has several chunks. With
// --experts every second layer is of experts, which that number of neighbours of a stage share, along any axes: each
// sends them different positions. With several chunks, too, a forward and a backward are one block (Megatron-LM's
// overlap). With a side of 1 it is a box of fewer dimensions. Where none is given, a side is 2 while the ranks can be
// halved, tensor first, and data is more where there would be more stages than layers; of context and experts there are
// none. Time: the bubble of 1F1B, 1/v of it with v chunks, over global batch / data micro-batches; the sides'
// collectives as by themselves, and 4 all_to_alls a layer of experts and micro-batch, which in blocks the other layer's
// work hides. Memory: 3 / (tensor x pipeline) of the weights, of experts 1 / experts; with --zero 1 a third of that,
// optimizer states, is shared by the context x data ranks, experts' by those that have the same ones; activations of p
// micro-batches in 1/p of the layers, 1/context of each; keys of their layers.
#include "training/strategies/pipelines/pipeline.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

const known_strategy& order_of(const model& m) {
  return m.parallel.chunks > 1 ? interleaved : one_forward_one_backward;
}

model with_sides(model m, uint32_t world_size) {
  const auto others = world_size / std::max(m.parallel.cp, 1u);
  if (m.parallel.tp == 0)
    m.parallel.tp = others % (2 * std::max(m.parallel.dp, 1u)) == 0 ? 2 : 1;
  return with_data(m, others);
}

strategy run_three_dimensional(rank& self, const model& m) {
  auto sides = with_sides(m, self.world_size());
  co_await order_of(m).run(self, sides);
}

mesh three_dimensional_shape(const model& m, uint32_t world_size) {
  return pipeline_mesh(with_sides(m, world_size), world_size);
}

caf::error check_three_dimensional(const model& m, uint32_t world_size) {
  if (world_size % std::max(m.parallel.cp, 1u) != 0)
    return invalid(fmt::format("{} are no groups of {} that share positions: --context must divide them",
                               counted(world_size, "rank"), m.parallel.cp));
  const auto sides = with_sides(m, world_size);
  if (m.parallel.chunks > 1 && pipeline_mesh(sides, world_size).pipeline == 1)
    return make_error(
      errc::invalid_argument,
      fmt::format("--chunks {}: tensor {} x context {} x data {} on {} leave one stage, whose chunks have "
                  "no next stage",
                  m.parallel.chunks, sides.parallel.tp, std::max(m.parallel.cp, 1u), sides.parallel.dp,
                  counted(world_size, "rank")));
  RETURN_ERROR(order_of(m).check(sides, world_size));
  return check_shared_layers(m, pipeline_mesh(sides, world_size));
}

} // namespace

const known_strategy three_dimensional{
  .name = "3d",
  .what = "all axes: tensor x context x data x stages, 1F1B or interleaved, experts within a stage",
  .run = run_three_dimensional,
  .check = check_three_dimensional,
  .shape = three_dimensional_shape,
  .shares = sharing::stages,
  .chunks = chunk_use::parts,
  .held = [](const model& m, const mesh& shape, uint64_t count) { return order_of(m).held(m, shape, count); },
  .shares_positions = true,
  .shares_experts = true,
  .usual_chunks = 1,
  .of_another = true,
  .stand_in = &one_forward_one_backward};

} // namespace ringmaster::training
