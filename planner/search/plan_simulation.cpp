#include "planner/search/plan_simulation.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/costs/transformer_costs.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

constexpr uint64_t plan_operations_max = 1'000'000'000;

} // namespace

plan_simulation::plan_simulation(const plan_question& asked, const training_setting& how) : asked_(asked), how_(how) {
  ensure(how.devices() == asked.devices, "a plan is for the devices that were asked for");
  ensure(uint64_t{how.micro_batches()} * how.micro_batch * how.dp == how.global_batch,
         "micro-batches add up to the global batch");
  trained_ = {.layers = places_of(asked.trained, how), .micro_batch = how.micro_batch, .parallel = how.simulated()};
  auto& parallel = trained_.parallel;
  if (how.shard_ranks > 0) {
    ensure(how.replicas() % how.sharers() == 0, "groups that share weights have the same number of ranks");
    const auto groups = std::min(how.replicas() / how.shard_ranks, 2u);
    parallel.shard_ranks = std::min(how.shard_ranks, 2u);
    parallel.tp = 1;
    parallel.dp = parallel.shard_ranks * groups;
    which_ = strategy_of(groups == 1 ? "fsdp" : "hsdp");
  } else {
    parallel.tp = std::min(how.tp, 2u);
    parallel.dp = std::min(how.dp, 2u);
    which_ = strategy_of(name_of(how.schedule));
  }
  parallel.sequence_parallel = how.sequence_parallel && parallel.tp > 1;
  shape_ = {parallel.tp, parallel.dp, parallel.pp};
  trained_.global_batch = uint64_t{how.micro_batches()} * how.micro_batch * parallel.dp;
  ensure(which_ != nullptr, "a plan's schedule is a strategy");
}

caf::error plan_simulation::problem() const {
  if (how_.offloads_activations)
    return invalid("activations that are off-loaded are not simulated");
  if (how_.zero > 1 && how_.cp > 1)
    return invalid("ZeRO 2 and 3 over context ranks are not simulated");
  return which_->check(trained_, shape_.size());
}

uint64_t plan_simulation::operations_of(uint32_t micro_batches) const {
  ensure(micro_batches > 0 && micro_batches <= how_.micro_batches(), "a step has micro-batches, at most the plan's");
  return uint64_t{micro_batches} * trained_.layers * 10 * shape_.size() / how_.pp;
}

std::optional<steady_steps> plan_simulation::steady() const {
  const auto p = std::max(how_.pp, 2u); // an even number: DualPipe's directions take turns
  const steady_steps x{4 * p, 4 * p + p * (1 + p % 2)};
  if (x.shorter + x.longer >= how_.micro_batches())
    return std::nullopt;
  return x;
}

std::unique_ptr<cost_model> plan_simulation::costs() const {
  return transformer_costs(asked_.trained, asked_.system, how_, shape_);
}

caf::expected<training_outcome> plan_simulation::simulate(uint32_t micro_batches, bool with_events,
                                                          const training_watch& watch) const {
  const auto priced = costs();
  auto step = trained_;
  step.global_batch = uint64_t{micro_batches} * how_.micro_batch * shape_.data;
  return training::simulate([this, &step](rank& self) { return which_->run(self, step); }, step, shape_.size(), *priced,
                            with_events, plan_operations_max, watch);
}

caf::expected<simulated_plan> plan_simulation::simulate_all(const training_watch& watch) const {
  TRY(done, simulate(false, watch));
  return simulated_plan{done->end, static_cast<double>(done->ranks[done->peak_rank].peak_memory), done->operations,
                        how_.micro_batches()};
}

caf::expected<simulated_plan> plan_simulation::simulate_steady(const steady_steps& x,
                                                               const training_watch& watch) const {
  auto part_of = [&](uint32_t micro_batches, uint64_t before) -> caf::expected<simulated_plan> {
    auto done = simulate(micro_batches, false, [&](uint64_t now) { return watch(before + now); });
    if (!done)
      return std::move(done.error());
    return simulated_plan{done->end, static_cast<double>(done->ranks[done->peak_rank].peak_memory), done->operations,
                          micro_batches};
  };
  auto shorter = part_of(x.shorter, 0);
  if (!shorter)
    return shorter;
  auto longer = part_of(x.longer, shorter->operations);
  if (!longer)
    return longer;
  ensure(x.shorter > 0 && x.shorter < x.longer && x.longer < how_.micro_batches(),
         "both steps are shorter than the plan's");
  ensure(longer->seconds >= shorter->seconds, "more micro-batches take more time");
  const auto further = static_cast<double>(how_.micro_batches() - x.longer) / (x.longer - x.shorter);
  longer->seconds += further * (longer->seconds - shorter->seconds);
  longer->memory_bytes += further * (longer->memory_bytes - shorter->memory_bytes);
  longer->operations += shorter->operations;
  return longer;
}

} // namespace ringmaster::training
