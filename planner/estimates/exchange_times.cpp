#include "planner/estimates/exchange_times.hpp"

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

/// Destinations that a position's choices have among `places` of equal chance, without its own.
double destinations(double places, double chosen) {
  return (places - 1) * (1 - std::pow(1 - 1 / places, chosen));
}

bool leaves_pod(const gpu_system& on, double devices) {
  return on.devices_per_pod > 0 && devices > on.devices_per_pod;
}

/// Of a domain's cards, for what goes among so many devices.
double network_of(const gpu_system& on, double devices) {
  return leaves_pod(on, devices) ? std::min(on.network_bandwidth, on.pod_bandwidth) : on.network_bandwidth;
}

/// Of a device's card, for what goes from one to the next among so many devices: where pods end, all of a domain's
/// devices share what it has to other pods.
double hop_bandwidth_of(const gpu_system& on, double devices) {
  return leaves_pod(on, devices) ? std::min(on.hop_bandwidth, on.pod_bandwidth / on.devices_per_host)
                                 : on.hop_bandwidth;
}

} // namespace

uint32_t neighbours(uint32_t ranks, double room) {
  auto result = static_cast<uint32_t>(room);
  while (ranks % result != 0)
    --result;
  return result;
}

namespace {

/// Of so many ranks, those that share a domain that has room for `room` of them: they lie in as few as will do, as
/// evenly as they can, and what a domain with one less reaches holds up all.
double share_of_domain(uint32_t ranks, double room) {
  return std::floor(ranks / std::ceil(ranks / room));
}

/// Of so many ranks that lie `stride` apart among `devices`, those that share a domain.
double ranks_inside(const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices) {
  const double d = ranks, t = stride, k = on.devices_per_host;
  return devices <= k ? d : share_of_domain(ranks, std::max(1.0, std::floor(k / t)));
}

} // namespace

double tensor_all_reduce_time(double bytes, uint32_t ranks, const gpu_system& on) {
  if (ranks == 1)
    return 0;
  auto within = [&](double k) { return 2 * (k - 1) / k * bytes / on.host_bandwidth; };
  const auto n = static_cast<double>(ranks);
  if (n <= on.devices_per_host)
    return on.host_latency_s + within(n);
  const auto hosts = n / on.devices_per_host;
  return 2 * on.host_latency_s + within(on.devices_per_host) + 2 * (hosts - 1) / hosts * bytes / network_of(on, n);
}

double key_bytes(const language_model& m, const parallel_setting& how, double samples) {
  const auto elements = m.key_value_heads_on(how.shape.tensor) * m.key_and_value_size();
  return bf16_bytes * samples * m.sequence / how.context * elements;
}

double context_exchange_time(double bytes, double hops, uint32_t devices, const gpu_system& on) {
  if (devices <= on.devices_per_host)
    return hops * (on.host_latency_s + bytes / on.host_bandwidth);
  return hops * (on.hop_latency_s + bytes / hop_bandwidth_of(on, devices));
}

double other_domains(const expert_layers& x, double domains) {
  const auto anywhere = destinations(domains, x.chosen);
  if (x.groups == 0)
    return anywhere;
  const double groups = x.groups, some = x.groups_chosen, others = (domains - 1) / domains;
  if (domains < groups) { // each has several groups: those of which one at least is chosen
    auto none = 1.0;
    for (double i = 0; i < some; ++i)
      none *= std::max(0.0, groups - groups / domains - i) / (groups - i);
    return std::min(anywhere, domains * (1 - none) * others);
  }
  const auto of_a_group = domains / groups, choices = std::max(1.0, x.chosen / some);
  return std::min(anywhere, some * of_a_group * (1 - std::pow(1 - 1 / of_a_group, choices)) * others);
}

double dispatch_time(double rows, double row_bytes, const expert_layers& x, uint32_t ranks, const gpu_system& on) {
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
                       const parallel_setting& how) {
  return all_reduce_time(bytes * x.dense, on, replicas, how.shape.tensor, how.devices())
         + all_reduce_time(bytes * x.experts, on, how.expert_sharers(), how.expert, how.devices());
}

double ring_time(double bytes, const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices) {
  const double d = ranks, t = stride, k = on.devices_per_host;
  const auto inside = ranks_inside(on, ranks, stride, devices);
  auto bandwidth = on.host_bandwidth;
  if (inside < d) // as many rings as ranks in a domain, each of which leaves it by a card of its own
    bandwidth = std::min(bandwidth, network_of(on, d * t) / k * inside);
  return (d - 1) / d * bytes / bandwidth;
}

double shard_time(double bytes, const rank_parameters& x, const gpu_system& on, const parallel_setting& how) {
  return ring_time(bytes * x.dense, on, how.sharers(), how.shape.tensor, how.devices())
         + ring_time(bytes * x.experts, on, how.expert_sharers(), how.expert, how.devices());
}

double ring_latency(const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices) {
  const auto hops = ranks / ranks_inside(on, ranks, stride, devices) - 1;
  return hops * on.ring_hop_s + (ranks - 1 - hops) * on.ring_step_s;
}

double shard_latency(bool has_experts, const gpu_system& on, const parallel_setting& how) {
  const auto dense = ring_latency(on, how.sharers(), how.shape.tensor, how.devices());
  if (!has_experts || how.expert == 1)
    return dense; // experts' parameters go along
  return dense + ring_latency(on, how.expert_replicas(), how.expert, how.devices());
}

double groups_all_reduce_time(const rank_parameters& shard, const gpu_system& on, const parallel_setting& how) {
  const auto parameters = shard.dense + (how.expert_goes_along() ? shard.experts : 0);
  return all_reduce_time(how.gradient_bytes * parameters, on, how.replicas() / how.sharers(),
                         how.sharers() * how.shape.tensor, how.devices());
}

double mirror_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape) {
  const auto bytes = bf16_bytes * parameters;
  if (shape.size() <= on.devices_per_host)
    return bytes / on.host_bandwidth;
  return bytes * std::min<double>(shape.tensor, on.devices_per_host) / network_of(on, shape.size());
}

double hop_time(const language_model& m, const gpu_system& on, const parallel_setting& how) {
  const auto bytes = bf16_bytes * how.micro_batch * m.sequence / how.context * m.hidden;
  const double devices = how.devices(), domain = on.devices_per_host, tensor = how.shape.tensor;
  const auto inside = bytes / (how.sequence_parallel ? tensor : 1) / on.host_bandwidth;
  if (devices <= domain)
    return on.hop_latency_s + inside;
  const auto between = bytes / std::min(tensor, domain) / hop_bandwidth_of(on, devices);
  const bool shares_domain = 2 * devices / how.shape.pipeline <= domain;
  return on.hop_latency_s + (shares_domain ? (inside + between) / 2 : between);
}

uint32_t messages_of(const parallel_setting& how) {
  const auto chunks = how.chunks_of_stage();
  if (how.shape.pipeline > 2)
    return 2 * chunks;
  return how.schedule == pipeline_schedule::zb_v ? 2 : 2 * chunks - 1; // two ends of the model, or two turns of a V
}

double exposed_hop_time(double hop, double whole_model, const gpu_system& on, const parallel_setting& how) {
  return std::max(hop * on.exposed_hop, hop - whole_model / how.shape.pipeline / messages_of(how));
}

} // namespace ringmaster::training
