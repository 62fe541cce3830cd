#include "client/api/handles.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/simulation/simulation.hpp"
#include "training/pictures/train_picture.hpp"
#include "training/pictures/train_trace.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include <ringmaster/algorithm.hpp>
#include <ringmaster/simulate.hpp>

#include <fmt/format.h>

namespace ringmaster::api {

namespace {

proto::CollectiveKind to_internal(collective_kind x) {
  return static_cast<proto::CollectiveKind>(x);
}

const training::cost_model& model_of(step_costs x) {
  return x == step_costs::lab ? training::lab_costs() : training::puzzle_costs();
}

} // namespace

// -- algorithms --

expected<void> register_algorithm(const algorithm_definition& added) {
  algorithm result{};
  result.name = added.name;
  result.kind = to_internal(added.kind);
  result.formula = added.formula;
  result.plan = added.plan;
  result.cost = added.cost;
  return public_result(ringmaster::register_algorithm(result));
}

std::vector<std::string> algorithm_names(collective_kind kind) {
  std::vector<std::string> result;
  for (auto& each : algorithms())
    if (each.kind == to_internal(kind))
      result.emplace_back(each.name);
  return result;
}

expected<schedule> plan(collective_kind kind, std::string_view algorithm, const plan_request& request) {
  return public_result(ringmaster::plan(to_internal(kind), algorithm, request));
}

expected<std::vector<schedule>> plan_all(collective_kind kind, std::string_view algorithm,
                                         const plan_request& request) {
  return public_result(ringmaster::plan_all(to_internal(kind), algorithm, request));
}

expected<algorithm_cost> cost_of(collective_kind kind, std::string_view algorithm, const plan_request& request) {
  return public_result(ringmaster::cost_of(to_internal(kind), algorithm, request));
}

proof_result prove(collective_kind kind, const plan_request& request, const std::vector<schedule>& ranks) {
  proof_result result;
  if (ranks.size() != request.world_size) {
    result.fault = fmt::format("there are {} schedules for {} ranks", ranks.size(), request.world_size);
    return result;
  }
  if (auto problem = check_request(to_internal(kind), request)) {
    result.fault = render(problem);
    return result;
  }
  auto found = ringmaster::prove(to_internal(kind), request, ranks);
  result.holds = !found.fault;
  if (found.fault)
    result.fault = render(found.fault);
  result.rounds = found.rounds;
  result.elements_sent = std::move(found.elements_sent);
  result.messages_sent = std::move(found.messages_sent);
  return result;
}

expected<simulated_collective> simulate_collective(collective_kind kind, std::string_view algorithm,
                                                   const plan_request& request, uint64_t element_bytes,
                                                   const network_model& network) {
  auto schedules = ringmaster::plan_all(to_internal(kind), algorithm, request);
  if (!schedules)
    return public_error(schedules.error());
  ringmaster::network on;
  on.link = {static_cast<picoseconds>(network.latency_s * 1e12), network.bandwidth};
  on.hosts = network.hosts;
  if (network.reduction_rate > 0)
    on.reduction_rate = network.reduction_rate;
  auto found = ringmaster::simulate(*schedules, on, element_bytes);
  if (!found)
    return public_error(found.error());
  if (!found->stuck.empty())
    return error{errc::invalid_argument, found->stuck};
  return simulated_collective{static_cast<double>(found->time) * 1e-12, found->messages, found->bytes,
                              found->busiest_port, found->busiest_share};
}

// -- strategies --

expected<void> register_strategy(const strategy_definition& added) {
  training::known_strategy result{};
  result.name = added.name;
  result.what = added.what;
  result.run = added.run;
  result.check = training::check_data_parallel;
  result.cut = training::batch_cut::when_requested;
  return public_result(training::register_strategy(result));
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> result;
  for (auto& each : training::strategies())
    result.emplace_back(each.name);
  return result;
}

expected<strategy_program> program_of(std::string_view strategy) {
  if (const auto* found = training::strategy_of(strategy))
    return found->run;
  return error{errc::invalid_argument,
               fmt::format("there is no strategy \"{}\"; there are: {}", strategy, fmt::join(strategy_names(), ", "))};
}

struct simulated_step::state {
  training::training_outcome found;
  training::model trained;
  uint32_t ranks;
  const training::cost_model* costs;
};

expected<simulated_step> simulate_step(strategy_program program, const training::model& trained, uint32_t ranks,
                                       step_costs costs, bool with_events) {
  auto found = training::simulate([&](training::rank& self) { return program(self, trained); }, trained, ranks,
                                  model_of(costs), with_events);
  if (!found)
    return public_error(found.error());
  simulated_step result;
  result.time = found->time;
  result.bubble_fraction = found->bubble_fraction;
  result.communication_fraction = found->communication_fraction;
  result.peak_memory = found->ranks[found->peak_rank].peak_memory;
  if (with_events)
    result.events = std::make_shared<const simulated_step::state>(simulated_step::state{std::move(*found), trained,
                                                                                        ranks, &model_of(costs)});
  return result;
}

namespace {

error no_events() {
  return {errc::invalid_argument, "the step was simulated without events"};
}

} // namespace

expected<std::string> simulated_step::svg(std::string_view title) const {
  if (!events)
    return no_events();
  train_run run;
  run.strategy = title;
  run.trained = events->trained;
  run.ranks = events->ranks;
  run.costs = events->costs;
  return public_result(picture_of(run, events->found));
}

expected<std::string> simulated_step::trace() const {
  if (!events)
    return no_events();
  return public_result(trace_of(events->found, *events->costs));
}

} // namespace ringmaster::api
