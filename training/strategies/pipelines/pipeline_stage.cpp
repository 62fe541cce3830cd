#include "training/strategies/pipelines/pipeline_stage.hpp"

namespace ringmaster::training {

namespace {

uint32_t stage_count(const pipeline_plan& plan) {
  return plan.where == placement::both_ways ? plan.shape.pipeline : plan.shape.pipeline * plan.chunks;
}

/// Which stage place r of the pipeline has as chunk c.
uint32_t number(const pipeline_plan& plan, uint32_t r, uint32_t c) {
  const auto p = plan.shape.pipeline;
  if (plan.where == placement::loop)
    return c * p + r;
  if (plan.where == placement::both_ways)
    return c == 0 ? r : p - 1 - r;
  return c == 0 ? r : 2 * p - 1 - r;
}

struct stage_place {
  uint32_t r = 0, chunk = 0;
};

/// Who has that stage; in a pipeline both ways, of the same way.
stage_place place_of(const pipeline_plan& plan, uint32_t stage, uint32_t chunk) {
  const auto p = plan.shape.pipeline;
  if (plan.where == placement::loop)
    return {stage % p, stage / p};
  if (plan.where == placement::both_ways)
    return {chunk == 0 ? stage : p - 1 - stage, chunk};
  return stage < p ? stage_place{stage, 0} : stage_place{2 * p - 1 - stage, 1};
}

} // namespace

void passages::grow() {
  const auto mask = 2 * mask_ + 1;
  std::vector<activation> inputs((mask + size_t{1}) * layers_);
  std::vector<activation_gradient> by_outputs(by_outputs_.empty() ? 0 : inputs.size());
  std::vector<attention_keys> keys(keys_.empty() ? 0 : inputs.size());
  std::vector<bool> entered(mask + size_t{1});
  std::vector<std::unique_ptr<passage_ends>> ends(mask + size_t{1});
  for (auto i = oldest_; i < newest_; ++i) {
    for (size_t l = 0; l < layers_; ++l)
      inputs[(i & mask) * layers_ + l] = std::move(input(i, l));
    for (size_t l = 0; l < layers_ && !by_outputs.empty(); ++l)
      by_outputs[(i & mask) * layers_ + l] = std::move(by_output(i, l));
    for (size_t l = 0; l < layers_ && !keys.empty(); ++l)
      keys[(i & mask) * layers_ + l] = std::move(this->keys(i, l));
    entered[i & mask] = entered_[i & mask_];
    ends[i & mask] = std::move(ends_[i & mask_]);
  }
  inputs_ = std::move(inputs);
  by_outputs_ = std::move(by_outputs);
  keys_ = std::move(keys);
  entered_ = std::move(entered);
  ends_ = std::move(ends);
  mask_ = mask;
}

pipeline_stage stage_of(const model& m, const pipeline_plan& plan, uint32_t rank, uint32_t chunk) {
  const auto& shape = plan.shape;
  const auto mine = number(plan, shape.stage(rank), chunk), count = stage_count(plan);
  pipeline_stage s;
  s.first = mine == 0;
  s.last = mine + 1 == count;
  if (!s.first) {
    const auto before = place_of(plan, mine - 1, chunk);
    s.previous = shape.at_stage(rank, before.r);
    s.previous_chunk = before.chunk;
  }
  if (!s.last) {
    const auto behind = place_of(plan, mine + 1, chunk);
    s.next = shape.at_stage(rank, behind.r);
    s.next_chunk = behind.chunk;
  }
  s.layers = layers_of(m, mine, count);
  s.samples = samples_of(m, shape.data_index(rank), shape.data);
  s.micro_batches = pipeline_micro_batches(m, shape);
  s.first_micro_batch = plan.where == placement::both_ways && chunk != 0 ? s.micro_batches / 2 : 0;
  s.under_way = passages{s.layers.count()};
  s.weights.resize(s.layers.count());
  s.states.resize(s.layers.count());
  s.sums.resize(s.layers.count());
  return s;
}

} // namespace ringmaster::training
