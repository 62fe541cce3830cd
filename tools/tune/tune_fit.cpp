#include "tools/tune/tune_fit.hpp"

#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/request_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster {

namespace {

constexpr uint64_t element_bytes = 4; // float32

plan_request world_of(const cost_sample& x) {
  proto::Collective what;
  what.set_count(x.bytes / element_bytes);
  auto result = request_of(what, x.ranks, 0);
  result.hosts = x.hosts;
  return result;
}

options::duration duration_of(double seconds) {
  return options::duration{std::llround(seconds * 1e9)};
}

/// Bytes a second.
uint64_t rate_of(double seconds_a_byte) {
  ensure(seconds_a_byte > 0, "a rate that a fit has seen takes time");
  constexpr double fastest = 1e15; // the maximum in a configuration
  return static_cast<uint64_t>(std::clamp(std::round(1 / seconds_a_byte), 1.0, fastest));
}

caf::expected<process_work> process_work_of(const cost_sample& x, const process_constants& machine) {
  TRY(which, find_algorithm(x.kind, x.algorithm));
  return work_in_process(**which, world_of(x), element_bytes, machine);
}

/// The last two are 0 if all ranks are on one host.
caf::expected<std::vector<double>> network_features(const cost_sample& x) {
  if (auto request = world_of(x); has_two_levels(request)) {
    TRY(which, find_algorithm(x.kind, x.algorithm));
    TRY(work, work_on_hosts(**which, request, element_bytes));
    return work->features();
  }
  TRY(cost, cost_of(x.kind, x.algorithm, world_of(x)));
  return std::vector<double>{1,
                             static_cast<double>(cost->latencies),
                             static_cast<double>(cost->serial_elements * element_bytes),
                             static_cast<double>(cost->messages),
                             0,
                             0};
}

/// A fit of algorithms that walk a schedule in one process.
struct walked_fit {
  linear_fit fit{};
  std::vector<observation> observations{};
  uint64_t cache_bytes = 0;
};

/// The fit with the cache size that explains the samples best. The system's cache size does not help: on a virtual
/// machine the cache is shared with others.
caf::expected<walked_fit> best_walked_fit(const std::vector<cost_sample>& samples, process_constants machine) {
  constexpr uint64_t smallest = 1u << 20, largest = 1u << 30;
  walked_fit best;
  for (machine.cache_bytes = smallest; machine.cache_bytes <= largest; machine.cache_bytes *= 2) {
    std::vector<observation> observations;
    for (const auto& x : samples) {
      TRY(work, process_work_of(x, machine));
      observations.push_back({work->features(), x.seconds});
    }
    auto fit = fit_least_squares(observations);
    if (best.fit.coefficients.empty() || fit.residual < best.fit.residual)
      best = {std::move(fit), std::move(observations), machine.cache_bytes};
  }
  return best;
}

/// The samples by the terms that explain them.
struct sorted_samples {
  std::vector<cost_sample> walked{};
  std::vector<observation> joint{}, network{};
  std::vector<cost_sample> training{};
  bool on_hosts = false; ///< Some are on several hosts.
};

caf::expected<sorted_samples> sorted_by_terms(const std::vector<cost_sample>& samples, const process_constants& known) {
  sorted_samples result;
  for (const auto& x : samples) {
    if (x.by == transport::network) {
      TRY(features, network_features(x));
      result.network.push_back({std::move(*features), x.seconds});
      result.on_hosts = result.on_hosts || has_two_levels(world_of(x));
    } else if (x.by == transport::training) {
      result.training.push_back(x);
    } else if (is_shared_memory(x.kind, x.algorithm)) {
      TRY(work, process_work_of(x, known));
      result.joint.push_back({work->features(), x.seconds});
    } else {
      result.walked.push_back(x);
    }
  }
  return result;
}

/// Takes the fitted rate if the samples determine it, else the given one.
void take_seen(tuned_costs& result, uint64_t& rate, const seen_rates& seen, size_t feature, const char* key) {
  if (seen.has(feature))
    rate = rate_of(seen.coefficient(feature));
  else
    result.unseen.emplace_back(key);
}

caf::error fit_walked(tuned_costs& result, const sorted_samples& samples, const process_constants& known) {
  if (samples.walked.empty())
    return caf::none;
  TRY(fit, best_walked_fit(samples.walked, known));
  const seen_rates seen{fit->fit, fit->observations};
  RETURN_ERROR(seen.check("copies in one process", 4));
  auto& costs = result.values.costs;
  auto& x = fit->fit.coefficients;
  ensure(x.size() == 7, "a walk in a process has seven terms");
  costs.local_operation = duration_of(x[0]);
  costs.local_rank = duration_of(x[1]);
  costs.local_step = duration_of(x[2]);
  costs.local_message = duration_of(x[3]);
  costs.local_bandwidth = rate_of(x[4]);
  take_seen(result, costs.local_reduction_rate, seen, 5, "local-reduction-rate");
  take_seen(result, costs.local_memory_bandwidth, seen, 6, "local-memory-bandwidth");
  if (seen.has(6))
    costs.local_cache_bytes = fit->cache_bytes;
  result.walked = std::move(fit->fit);
  return caf::none;
}

caf::error fit_shared_memory(tuned_costs& result, const sorted_samples& samples) {
  if (samples.joint.empty())
    return caf::none;
  result.joint = fit_least_squares(samples.joint);
  const seen_rates seen{result.joint, samples.joint};
  RETURN_ERROR(seen.check("shared-memory operations", 2));
  auto& costs = result.values.costs;
  auto& x = result.joint.coefficients;
  ensure(x.size() >= 3, "a shared-memory operation has terms for the operation, ranks and bytes");
  costs.shared_memory_operation = duration_of(x[0]);
  costs.joint_rank = duration_of(x[1]);
  costs.joint_bandwidth = rate_of(x[2]);
  return caf::none;
}

caf::error fit_network(tuned_costs& result, const sorted_samples& samples) {
  if (samples.network.empty())
    return caf::none;
  result.network = fit_least_squares(samples.network);
  const seen_rates seen{result.network, samples.network};
  RETURN_ERROR(seen.check("messages between processes", 2));
  auto& costs = result.values.costs;
  auto& x = result.network.coefficients;
  ensure(x.size() == 6, "the network has six terms");
  costs.operation = duration_of(x[0]);
  costs.latency = duration_of(x[1]);
  costs.bandwidth = rate_of(x[2]);
  costs.message = duration_of(x[3]);
  if (samples.on_hosts) {
    costs.host_latency = duration_of(x[4]);
    take_seen(result, costs.host_bandwidth, seen, 5, "host-bandwidth");
  }
  return caf::none;
}

/// The mean of what remains without the shared-memory operation.
caf::error fit_training(tuned_costs& result, const sorted_samples& samples, uint32_t cores) {
  std::vector<observation> collectives, receives;
  for (const auto& x : samples.training) {
    auto moving = x;
    moving.by = transport::process;
    TRY(estimate, estimate_of(moving, result.values, cores));
    (x.kind == proto::SEND_RECV ? receives : collectives).push_back({{1}, std::max(x.seconds - *estimate, 1e-9)});
  }
  auto& costs = result.values.costs;
  if (!collectives.empty())
    costs.training_call = duration_of(fit_least_squares(collectives).coefficients.front());
  if (!receives.empty())
    costs.training_receive = duration_of(fit_least_squares(receives).coefficients.front());
  return caf::none;
}

} // namespace

caf::expected<tuned_costs> fit_costs(const std::vector<cost_sample>& samples, const options& known, uint32_t cores) {
  const auto machine = process_costs(known, cores);
  TRY(sorted, sorted_by_terms(samples, machine));
  tuned_costs result{known, {}, {}, {}, {}};
  RETURN_ERROR(fit_walked(result, *sorted, machine));
  RETURN_ERROR(fit_shared_memory(result, *sorted));
  if (auto problem = fit_training(result, *sorted, cores)) // needs the constants of shared-memory operations
    return problem;
  RETURN_ERROR(fit_network(result, *sorted));
  return result;
}

caf::expected<double> estimate_of(const cost_sample& x, const options& values, uint32_t cores) {
  if (x.by != transport::network) {
    auto constants = process_costs(values, cores);
    TRY(work, process_work_of(x, constants));
    return estimate(*work, constants).total_s() + (x.by == transport::training ? constants.training_s(x.kind) : 0);
  }
  TRY(features, network_features(x));
  auto costs = network_costs(values);
  return predict(std::vector<double>{costs.operation_s, costs.latency_s, 1 / costs.bandwidth, costs.message_overhead_s,
                                     costs.host_latency_s, 1 / costs.host_bandwidth},
                 *features);
}

std::string costs_section(options values, const std::string& remark) {
  auto text = fmt::format("[costs]\n; {}\n", remark);
  for (const auto& entry : option_entries(values))
    if (entry.section == "costs")
      text += fmt::format("; {}\n{}={}\n", entry.purpose, entry.key, value_text(entry));
  return text;
}

double seen_rates::largest_share(size_t feature) const {
  ensure(feature < fit_.coefficients.size(), "the fit has the feature");
  double result = 0;
  for (auto& x : observations_)
    if (auto whole = predict(fit_.coefficients, x.features); whole > 0)
      result = std::max(result, fit_.coefficients[feature] * x.features[feature] / whole);
  return result;
}

caf::error seen_rates::check(const char* of, size_t feature) const {
  if (observations_.empty() || has(feature))
    return caf::none;
  return make_error(
    errc::aborted,
    fmt::format("the bandwidth of {} cannot be determined: bytes take at most {:.1f} % of the time of any "
                "sample; use a larger --max-bytes, or more --repeats and --samples on an idle machine",
                of, 100 * largest_share(feature)));
}

} // namespace ringmaster
