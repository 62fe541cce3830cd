#include "tools/planning/plan_run.hpp"

#include "messages/errc.hpp"
#include "runtime/training/transformer/costs/transformer_costs.hpp"

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint64_t plan_operations_max = 1'000'000'000;

} // namespace

plan_run::plan_run(const plan_question& asked, const parallel_setting& how) : asked_(asked), how_(how) {
  const bool all = how.zero > 1 || how.schedule == pipeline_schedule::dualpipe;
  trained_.layers = places_of(asked.trained, how);
  trained_.micro_batch = how.micro_batch;
  trained_.chunks = how.chunks;
  trained_.zero = how.zero;
  if (how.shard > 0) {
    const auto sharers = std::min(how.shard, 2u), groups = std::min(how.replicas() / how.shard, 2u);
    shape_.data = sharers * groups;
    trained_.shard_ranks = sharers;
    which_ = strategy_of(groups == 1 ? "fsdp" : "hsdp");
  } else {
    shape_ = {std::min(how.shape.tensor, 2u), all ? how.shape.data : std::min(how.shape.data, 2u), how.shape.pipeline};
    trained_.tensor = shape_.tensor;
    trained_.data = shape_.data;
    trained_.sequence_parallel = how.sequence_parallel && shape_.tensor > 1;
    which_ = strategy_of(name_of(how.schedule));
  }
  trained_.global_batch = uint64_t{how.micro_batches()} * how.micro_batch * shape_.data;
}

std::string plan_run::problem() const {
  if (how_.offloads_activations)
    return "activations that are off-loaded are not simulated";
  if (how_.zero > 1 && how_.context > 1)
    return "ZeRO 2 and 3 over context ranks are not simulated";
  auto refused = which_->check(trained_, shape_.size());
  return refused ? render(refused) : std::string{};
}

uint64_t plan_run::operations() const {
  return uint64_t{how_.micro_batches()} * trained_.layers * 10 * shape_.size() / how_.shape.pipeline;
}

std::unique_ptr<cost_model> plan_run::costs() const {
  return transformer_costs(asked_.trained, asked_.system, how_, shape_);
}

caf::expected<training_outcome> plan_run::simulate(bool with_events, const training_watch& watch) const {
  const auto priced = costs();
  return training::simulate([this](rank& self) { return which_->run(self, trained_); }, trained_, shape_.size(),
                            *priced, with_events, plan_operations_max, watch);
}

} // namespace ringmaster
