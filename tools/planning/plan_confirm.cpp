#include "tools/planning/plan_confirm.hpp"

#include "messages/errc.hpp"
#include "runtime/training/strategies/strategies.hpp"
#include "runtime/training/transformer/plans/transformer_costs.hpp"

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint64_t plan_operations_max = 1'000'000'000; ///< Of one.
constexpr uint64_t operations_max = 100'000'000;        ///< Of all: some five seconds and more.

/// Data-parallel ranks that are simulated: they all do the same, so two stand for more, whose number the costs go by.
/// Where the strategy itself shares weights or gradients among them, or mirrors stages, all of them.
uint32_t data_simulated(const parallel_setting& how) {
  const bool all = how.zero > 1 || how.shard > 0 || how.schedule == pipeline_schedule::dualpipe;
  return all ? how.shape.data : std::min(how.shape.data, 2u);
}

/// The strategy's model that a plan stands for. Context and experts are in the costs.
model strategy_model(const language_model& trained, const parallel_setting& how) {
  model m;
  m.layers = places_of(trained, how);
  m.global_batch = uint64_t{how.micro_batches()} * how.micro_batch * data_simulated(how);
  m.micro_batch = how.micro_batch;
  m.chunks = how.chunks;
  m.tensor = how.shape.tensor;
  m.data = data_simulated(how);
  m.sequence_parallel = how.sequence_parallel && how.shape.tensor > 1;
  m.zero = how.zero;
  m.shard_ranks = how.shard;
  return m;
}

confirmed_plan confirm(const plan_question& asked, const planned& plan, uint64_t& operations_left,
                       const std::function<bool(double)>& watch) {
  const auto& how = plan.how;
  if (how.shard > 0 && (how.shape.tensor > 1 || how.context > 1 || how.expert > 1))
    return {plan, {}, "fsdp and hsdp are simulated of whole layers and samples"};
  if (how.offloads_activations)
    return {plan, {}, "activations that are off-loaded are not simulated"};
  const auto m = strategy_model(asked.trained, how);
  const auto ranks = how.shape.tensor * data_simulated(how) * how.shape.pipeline;
  const bool whole = how.shard == how.shape.data * how.context;
  auto* which = strategy_of(how.shard == 0 ? name_of(how.schedule) : whole ? "fsdp" : "hsdp");
  if (auto problem = which->check(m, ranks))
    return {plan, {}, render(problem)};
  const auto operations = uint64_t{how.micro_batches()} * m.layers / how.shape.pipeline * 10 * ranks;
  if (operations > operations_left)
    return {plan, {}, "too many operations"};
  auto costs = transformer_costs(asked.trained, asked.system, how);
  auto done = simulate([&](rank& self) { return which->run(self, m); }, m, ranks, *costs, false, plan_operations_max,
                       [&](uint64_t now) { return watch(static_cast<double>(now) / static_cast<double>(operations)); });
  if (!done && !watch(0))
    return {plan, {}, "interrupted"};
  if (!done)
    return {plan, {}, render(done.error())};
  operations_left -= std::min(operations_left, done->operations);
  return {plan,
          simulated_plan{done->end, static_cast<double>(done->ranks[done->peak_rank].peak_memory), done->operations},
          {}};
}

} // namespace

std::vector<confirmed_plan> confirm_plans(const plan_question& asked, const std::vector<planned>& best,
                                          const std::function<bool(double)>& watch) {
  std::vector<confirmed_plan> result;
  auto operations_left = operations_max;
  bool goes_on = true;
  auto at = [&](double part) {
    return goes_on = watch((static_cast<double>(result.size()) + std::min(part, 1.0))
                           / static_cast<double>(best.size()))
                     && goes_on;
  };
  for (auto& plan : best) {
    at(0);
    result.push_back(goes_on ? confirm(asked, plan, operations_left, at) : confirmed_plan{plan, {}, "interrupted"});
  }
  const auto room = asked.system.memory_bytes - asked.system.reserved_bytes;
  std::ranges::stable_sort(result, {}, [&](auto& x) {
    return std::pair{x.simulated && x.simulated->memory_bytes > room,
                     x.simulated ? x.simulated->seconds : x.plan.cost.seconds};
  });
  return result;
}

} // namespace ringmaster
