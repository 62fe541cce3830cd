#include "planner/estimates/exchange_times.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

/// The mean number of other places that a position is sent to, with `chosen` choices among `places` equal ones.
double destinations(double places, double chosen) {
  return (places - 1) * (1 - std::pow(1 - 1 / places, chosen));
}

bool leaves_pod(const gpu_system& on, double devices) {
  return on.devices_per_pod > 0 && devices > on.devices_per_pod;
}

/// Bandwidth of a domain's network cards for a collective among this number of devices.
double network_of(const gpu_system& on, double devices) {
  return leaves_pod(on, devices) ? std::min(on.network_bandwidth, on.pod_bandwidth) : on.network_bandwidth;
}

/// Bandwidth of a device's card for point-to-point transfers among this number of devices. At the end of a pod, all
/// devices of a domain share its bandwidth to other pods.
double hop_bandwidth_of(const gpu_system& on, double devices) {
  return leaves_pod(on, devices) ? std::min(on.hop_bandwidth, on.pod_bandwidth / on.devices_per_host)
                                 : on.hop_bandwidth;
}

} // namespace

uint32_t neighbours(uint32_t ranks, double room) {
  ensure(ranks > 0 && room >= 1, "a domain has room for at least one of the ranks");
  auto result = static_cast<uint32_t>(room);
  while (ranks % result != 0)
    --result;
  return result;
}

namespace {

/// How many of the ranks share a domain with room for `room` of them. Ranks fill as few domains as possible, evenly;
/// a domain with one rank less is the slowest and counts.
double share_of_domain(uint32_t ranks, double room) {
  ensure(ranks > 0 && room >= 1, "a domain has room for at least one of the ranks");
  return std::floor(ranks / std::ceil(ranks / room));
}

/// How many of the ranks, `stride` apart among `devices`, share a domain.
double ranks_inside(const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices) {
  const double d = ranks, t = stride, k = on.devices_per_host;
  const auto result = devices <= k ? d : share_of_domain(ranks, std::max(1.0, std::floor(k / t)));
  ensure(result >= 1 && result <= d, "a domain holds from one to all of a group's ranks");
  return result;
}

} // namespace

double tensor_all_reduce_time(double bytes, uint32_t ranks, const gpu_system& on) {
  ensure(ranks > 0 && !(bytes < 0), "an all_reduce has ranks and bytes");
  if (ranks == 1)
    return 0;
  auto within = [&](double k) { return 2 * (k - 1) / k * bytes / on.host_bandwidth; };
  const auto n = static_cast<double>(ranks);
  if (n <= on.devices_per_host)
    return on.host_latency_s + within(n);
  const auto hosts = n / on.devices_per_host;
  return 2 * on.host_latency_s + within(on.devices_per_host) + 2 * (hosts - 1) / hosts * bytes / network_of(on, n);
}

double key_bytes(const language_model& m, const training_setting& how, double samples) {
  const auto elements = m.key_value_heads_on(how.tp) * m.key_and_value_size();
  return bf16_bytes * samples * m.sequence / how.cp * elements;
}

double context_exchange_time(double bytes, double hops, uint32_t devices, const gpu_system& on) {
  ensure(hops >= 1 && devices > 1, "keys go around among at least two context ranks");
  if (devices <= on.devices_per_host)
    return hops * (on.host_latency_s + bytes / on.host_bandwidth);
  return hops * (on.hop_latency_s + bytes / hop_bandwidth_of(on, devices));
}

double other_domains(const expert_layers& x, double domains) {
  ensure(domains >= 1, "experts are in at least one domain");
  const auto anywhere = destinations(domains, x.chosen);
  if (x.groups == 0)
    return anywhere;
  const double groups = x.groups, some = x.groups_chosen, others = (domains - 1) / domains;
  if (domains < groups) { // each domain has several groups; it counts if one is chosen
    auto none = 1.0;
    for (double i = 0; i < some; ++i)
      none *= std::max(0.0, groups - groups / domains - i) / (groups - i);
    return std::min(anywhere, domains * (1 - none) * others);
  }
  const auto of_a_group = domains / groups, choices = std::max(1.0, x.chosen / some);
  return std::min(anywhere, some * of_a_group * (1 - std::pow(1 - 1 / of_a_group, choices)) * others);
}

double dispatch_time(double rows, double row_bytes, const expert_layers& x, uint32_t ranks, const gpu_system& on) {
  ensure(ranks > 0 && !(rows < 0), "a dispatch has ranks and positions");
  if (ranks == 1)
    return 0;
  const double n = ranks, inside = share_of_domain(ranks, on.devices_per_host), domains = n / inside;
  const auto within = destinations(n, x.chosen) * rows * row_bytes / on.host_bandwidth;
  if (domains <= 1)
    return on.host_latency_s + within;
  const auto card = network_of(on, n) / on.devices_per_host * on.dispatch_efficiency;
  return on.host_latency_s + on.hop_latency_s + std::max(within, other_domains(x, domains) * rows * row_bytes / card);
}

double all_reduce_time(double bytes, const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices) {
  ensure(ranks > 0 && stride > 0 && devices > 0, "a group has ranks at a distance among the devices");
  if (ranks == 1)
    return 0;
  const double d = ranks, t = stride, k = on.devices_per_host;
  const auto inside = ranks_inside(on, ranks, stride, devices);
  const auto outside = d / inside;
  auto seconds = 2 * (inside - 1) / inside * bytes / on.host_bandwidth;
  if (outside > 1) // each of the group's ranks in a domain has a card of its own
    seconds += 2 * (outside - 1) / outside * bytes / (network_of(on, d * t) / k * inside);
  return seconds;
}

double all_reduce_time(double bytes, const rank_parameters& x, uint32_t replicas, const gpu_system& on,
                       const training_setting& how) {
  return all_reduce_time(bytes * x.dense, on, replicas, how.tp, how.devices())
         + all_reduce_time(bytes * x.experts, on, how.expert_sharers(), how.ep, how.devices());
}

double ring_time(double bytes, const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices) {
  ensure(ranks > 0 && stride > 0 && devices > 0, "a ring has ranks at a distance among the devices");
  const double d = ranks, t = stride, k = on.devices_per_host;
  const auto inside = ranks_inside(on, ranks, stride, devices);
  auto bandwidth = on.host_bandwidth;
  if (inside < d) // one ring for each rank in a domain, each through its own card
    bandwidth = std::min(bandwidth, network_of(on, d * t) / k * inside);
  return (d - 1) / d * bytes / bandwidth;
}

double shard_time(double bytes, const rank_parameters& x, const gpu_system& on, const training_setting& how) {
  ensure(how.shard_ranks > 0, "only fully sharded weights are gathered");
  return ring_time(bytes * x.dense, on, how.sharers(), how.tp, how.devices())
         + ring_time(bytes * x.experts, on, how.expert_sharers(), how.ep, how.devices());
}

double ring_latency(const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices) {
  ensure(ranks > 0, "a ring has ranks");
  const auto hops = ranks / ranks_inside(on, ranks, stride, devices) - 1;
  ensure(hops >= 0 && hops < ranks, "a ring has fewer hops between domains than ranks");
  return hops * on.ring_hop_s + (ranks - 1 - hops) * on.ring_step_s;
}

double shard_latency(bool has_experts, const gpu_system& on, const training_setting& how) {
  const auto dense = ring_latency(on, how.sharers(), how.tp, how.devices());
  if (!has_experts || how.ep == 1)
    return dense; // experts' parameters go along
  return dense + ring_latency(on, how.expert_replicas(), how.ep, how.devices());
}

double groups_all_reduce_time(const rank_parameters& shard, const gpu_system& on, const training_setting& how) {
  ensure(how.shard_ranks > 0 && how.sharers() <= how.replicas(), "groups that share weights are made of replicas");
  const auto parameters = shard.dense + (how.expert_goes_along() ? shard.experts : 0);
  return all_reduce_time(how.gradient_bytes * parameters, on, how.replicas() / how.sharers(), how.sharers() * how.tp,
                         how.devices());
}

double mirror_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape) {
  const auto bytes = bf16_bytes * parameters;
  if (shape.size() <= on.devices_per_host)
    return bytes / on.host_bandwidth;
  return bytes * std::min<double>(shape.tensor, on.devices_per_host) / network_of(on, shape.size());
}

double hop_time(const language_model& m, const gpu_system& on, const training_setting& how) {
  const auto bytes = bf16_bytes * how.micro_batch * m.sequence / how.cp * m.hidden;
  const double devices = how.devices(), domain = on.devices_per_host, tensor = how.tp;
  const auto inside = bytes / (how.sequence_parallel ? tensor : 1) / on.host_bandwidth;
  if (devices <= domain)
    return on.hop_latency_s + inside;
  const auto between = bytes / std::min(tensor, domain) / hop_bandwidth_of(on, devices);
  const bool shares_domain = 2 * devices / how.pp <= domain;
  return on.hop_latency_s + (shares_domain ? (inside + between) / 2 : between);
}

uint32_t messages_of(const training_setting& how) {
  const auto chunks = how.chunks_of_stage();
  if (how.pp > 2)
    return 2 * chunks;
  return how.schedule == pipeline_schedule::zb_v ? 2 : 2 * chunks - 1; // two ends of the model, or two turns of a V
}

double exposed_hop_time(double hop, double whole_model, const gpu_system& on, const training_setting& how) {
  return std::max(hop * on.exposed_hop, hop - whole_model / how.pp / messages_of(how));
}

} // namespace ringmaster::training
