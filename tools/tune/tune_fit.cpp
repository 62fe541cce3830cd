#include "tools/tune/tune_fit.hpp"

#include "actors/configuration/settings.hpp"
#include "runtime/algorithms/registry.hpp"
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

/// Bytes a second; what takes no time is as fast as may be written.
uint64_t rate_of(double seconds_a_byte) {
  constexpr double fastest = 1e15;
  return static_cast<uint64_t>(seconds_a_byte * fastest <= 1 ? fastest : std::max(1.0, std::round(1 / seconds_a_byte)));
}

caf::expected<process_work> process_work_of(const cost_sample& x, const process_constants& machine) {
  auto which = find_algorithm(x.kind, x.algorithm);
  if (!which)
    return std::move(which.error());
  return work_in_process(**which, world_of(x), element_bytes, machine);
}

/// The last two are 0 where ranks do not lie on several hosts.
caf::expected<std::vector<double>> network_features(const cost_sample& x) {
  if (auto request = world_of(x); has_two_levels(request)) {
    auto which = find_algorithm(x.kind, x.algorithm);
    if (!which)
      return std::move(which.error());
    auto work = work_on_hosts(**which, request, element_bytes);
    if (!work)
      return std::move(work.error());
    return work->features();
  }
  auto cost = cost_of(x.kind, x.algorithm, world_of(x));
  if (!cost)
    return std::move(cost.error());
  return std::vector<double>{1,
                             static_cast<double>(cost->latencies),
                             static_cast<double>(cost->serial_elements * element_bytes),
                             static_cast<double>(cost->messages),
                             0,
                             0};
}

/// The fit of what is walked in one process, with caches of the size under which it is best. What the system says of
/// its caches is of little use: in a virtual machine others have a share in them.
caf::expected<linear_fit> fit_walked(const std::vector<cost_sample>& samples, process_constants machine,
                                     uint64_t& cache_bytes) {
  constexpr uint64_t smallest = 1u << 20, largest = 1u << 30;
  linear_fit best;
  for (machine.cache_bytes = smallest; machine.cache_bytes <= largest; machine.cache_bytes *= 2) {
    std::vector<observation> observations;
    for (const auto& x : samples) {
      auto work = process_work_of(x, machine);
      if (!work)
        return std::move(work.error());
      observations.push_back({work->features(), x.seconds});
    }
    auto fit = fit_least_squares(observations);
    if (best.coefficients.empty() || fit.residual < best.residual) {
      best = std::move(fit);
      cache_bytes = machine.cache_bytes;
    }
  }
  return best;
}

} // namespace

caf::expected<tuned_costs> fit_costs(const std::vector<cost_sample>& samples, const options& known, uint32_t cores) {
  std::vector<cost_sample> walked;
  std::vector<observation> joint, network;
  for (const auto& x : samples) {
    if (x.by == transport::network) {
      auto features = network_features(x);
      if (!features)
        return std::move(features.error());
      network.push_back({std::move(*features), x.seconds});
    } else if (is_joint(x.kind, x.algorithm)) {
      auto work = process_work_of(x, process_costs(known, cores));
      if (!work)
        return std::move(work.error());
      joint.push_back({work->features(), x.seconds});
    } else {
      walked.push_back(x);
    }
  }
  tuned_costs result{known, {}, fit_least_squares(joint), fit_least_squares(network)};
  if (!walked.empty()) {
    auto fit = fit_walked(walked, process_costs(known, cores), result.values.costs.local_cache_bytes);
    if (!fit)
      return std::move(fit.error());
    result.walked = std::move(*fit);
  }
  auto& costs = result.values.costs;
  if (auto& x = result.walked.coefficients; !x.empty()) {
    costs.local_operation = duration_of(x[0]);
    costs.local_rank = duration_of(x[1]);
    costs.local_step = duration_of(x[2]);
    costs.local_message = duration_of(x[3]);
    costs.local_bandwidth = rate_of(x[4]);
    costs.local_reduction_rate = rate_of(x[5]);
    costs.local_memory_bandwidth = rate_of(x[6]);
  }
  if (auto& x = result.joint.coefficients; !x.empty()) {
    costs.joint_operation = duration_of(x[0]);
    costs.joint_rank = duration_of(x[1]);
    costs.joint_bandwidth = rate_of(x[2]);
  }
  if (auto& x = result.network.coefficients; !x.empty()) {
    costs.operation = duration_of(x[0]);
    costs.latency = duration_of(x[1]);
    costs.bandwidth = rate_of(x[2]);
    costs.message = duration_of(x[3]);
    if (std::ranges::any_of(samples, [](auto& y) { return has_two_levels(world_of(y)); })) {
      costs.host_latency = duration_of(x[4]);
      costs.host_bandwidth = rate_of(x[5]);
    }
  }
  return result;
}

caf::expected<double> estimate_of(const cost_sample& x, const options& values, uint32_t cores) {
  if (x.by == transport::process) {
    auto constants = process_costs(values, cores);
    auto work = process_work_of(x, constants);
    if (!work)
      return std::move(work.error());
    return estimate(*work, constants).total_s();
  }
  auto features = network_features(x);
  if (!features)
    return std::move(features.error());
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

} // namespace ringmaster
