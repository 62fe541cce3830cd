// Whether, and how, a world is a pipeline.
#include "training/strategies/pipelines/pipeline.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace ringmaster::training {

namespace {

/// What a rank's neighbours send to experts goes side by side: positions of the same samples first.
caf::error check_experts(const model& m, const mesh& shape) {
  const auto parts = shape.context * shape.tensor;
  if (shape.stage_size() % m.parallel.ep != 0)
    return invalid(fmt::format(
      "{} of a stage cannot be groups of {} that share experts: --experts must divide tensor {} x context {} x data {}",
      counted(shape.stage_size(), "rank"), m.parallel.ep, shape.tensor, shape.context, shape.data));
  if (m.parallel.ep % parts != 0 && parts % m.parallel.ep != 0)
    return invalid(fmt::format("{} ranks that share experts are neither a part nor a multiple of the {} that share a "
                               "sample's positions, tensor {} x context {}",
                               m.parallel.ep, parts, shape.tensor, shape.context));
  return caf::none;
}

} // namespace

pipeline_order pipeline_order::listed(std::vector<pipeline_step> all) {
  auto count = static_cast<uint32_t>(all.size());
  return {count,
          [steps = std::make_shared<std::vector<pipeline_step>>(std::move(all))](uint32_t i) { return (*steps)[i]; }};
}

mesh pipeline_mesh(const model& m, uint32_t world_size) {
  mesh result{std::max(m.parallel.tp, 1u), std::max(m.parallel.dp, 1u), 1, std::max(m.parallel.cp, 1u)};
  result.pipeline = world_size / std::max(result.stage_size(), 1u);
  return result;
}

uint32_t pipeline_micro_batches(const model& m, const mesh& shape) {
  return static_cast<uint32_t>(micro_batch_count(m, shape.data));
}

model with_data(model m, uint32_t world_size) {
  m.parallel.tp = std::max(m.parallel.tp, 1u);
  if (m.parallel.dp != 0)
    return m;
  m.parallel.dp = world_size % (2 * m.parallel.tp) == 0 ? 2 : 1;
  while (world_size / (m.parallel.tp * m.parallel.dp) > m.layers
         && world_size % (2 * m.parallel.tp * m.parallel.dp) == 0)
    m.parallel.dp *= 2;
  return m;
}

caf::error check_pipeline_of(const model& m, const mesh& shape, uint32_t stages) {
  if (stages > m.layers)
    return make_error(errc::invalid_argument,
                      fmt::format("{} stages need a model of as many layers at least, not {}; more tensor-parallel or "
                                  "data-parallel ranks leave fewer stages",
                                  stages, m.layers));
  if (shape.data > 1)
    return check_data_parallel(m, shape.data);
  return caf::none;
}

caf::error check_pipeline(const model& m, uint32_t world_size) {
  RETURN_ERROR(check_mesh(m, world_size));
  auto shape = pipeline_mesh(m, world_size);
  return check_pipeline_of(m, shape, shape.pipeline);
}

caf::error check_shared_layers(const model& m, const mesh& shape) {
  if (m.parallel.cp <= 1 && m.parallel.ep <= 1)
    return caf::none;
  if (m.for_real)
    return invalid("ranks that share positions or experts need layers of attention or experts that can be shared; "
                   "those that are trained here cannot: ringmaster simulate train simulates it");
  if (m.parallel.zero > 1)
    return invalid("with --context or --experts each rank has its stage's weights whole: --zero is 0 or 1");
  if (shape.context * uint64_t{shape.tensor} > position_run::of_max)
    return invalid(fmt::format("tensor {} x context {} ranks that share positions are more than {}", shape.tensor,
                               shape.context, position_run::of_max));
  return m.parallel.ep > 1 ? check_experts(m, shape) : caf::none;
}

} // namespace ringmaster::training
