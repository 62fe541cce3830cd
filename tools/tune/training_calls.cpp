#include "tools/tune/training_calls.hpp"

#include "client/training/training_run.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "training/data/synthetic_digits.hpp"
#include "training/language/collective_kind.hpp"
#include "training/layers/plain_layers.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

using namespace training;

constexpr uint32_t trained_ranks = 2, micro_batch = 64, batch = 4 * micro_batch;

caf::expected<run_settings> little_training(std::string_view strategy) {
  constexpr uint64_t seed = 1;
  constexpr uint32_t steps = 20;
  TRY(digits, make_synthetic_digits(seed, steps * batch, 10));
  run_settings result;
  result.data = std::move(*digits);
  result.ranks = trained_ranks;
  result.epochs = 2; // the second one is measured
  result.profiles = true;
  auto& job = result.job;
  job.layers = perceptron(std::vector<uint64_t>{28 * 28, 64, 10});
  job.shape.layers = static_cast<uint32_t>(job.layers.size());
  job.shape.global_batch = batch;
  job.shape.micro_batch = micro_batch;
  job.strategy = strategy_of(strategy);
  job.update.rate = 1e-3;
  return result;
}

/// A call with the first layer's parameters, or with the activations of a micro-batch. The samples match none of a
/// step, so that `time_of` returns the mean: the first call of a step finds its receiver asleep.
pending call_of(op what) {
  pending x;
  x.what = what;
  x.among = {0, trained_ranks, 1};
  if (is_collective(what)) {
    x.argument.kind = what == op::all_gather ? value_kind::weight : value_kind::weight_gradient;
  } else {
    x.peer = 1;
    x.argument.kind = value_kind::activation;
    x.argument.layer = 1;
    x.argument.samples.add(range_set{range{batch, batch + micro_batch}});
  }
  return x;
}

caf::expected<cost_sample> sample_of(const run_outcome& found, op what) {
  const auto call = call_of(what);
  std::vector<double> seconds;
  for (auto& step : found.profiles.steps)
    seconds.push_back(profiled_costs{*found.job, step.events}.time_of(call, trained_ranks));
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  if (middle == seconds.end() || *middle <= 0)
    return make_error(errc::aborted, "no step of the training was measured, so its communication is unknown");
  const auto kind = collective_kind_of(what);
  ensure(first_shared_memory(kind) != nullptr, "each kind of a training has a shared-memory algorithm");
  return cost_sample{transport::training,
                     kind,
                     std::string{first_shared_memory(kind)->name},
                     trained_ranks,
                     count_of(*found.job, call) * bytes_of(found.job->as),
                     *middle};
}

} // namespace

caf::expected<std::vector<cost_sample>> measure_training_calls(caf::actor_system& system,
                                                               const coordinator_actor& coordinator) {
  static const std::pair<std::string_view, std::vector<op>> trainings[] = {
    {"ddp", {op::all_reduce}}, {"zero3", {op::all_gather, op::reduce_scatter}}, {"gpipe", {op::receive}}};
  std::vector<cost_sample> result;
  for (auto& [strategy, calls] : trainings) {
    TRY(what, little_training(strategy));
    TRY(found, train(system, coordinator, std::move(*what)));
    for (auto call : calls) {
      TRY(sample, sample_of(*found, call));
      result.push_back(std::move(*sample));
    }
  }
  return result;
}

} // namespace ringmaster
