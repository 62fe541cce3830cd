#include "runtime/simulation/network.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster {

namespace {

constexpr double picoseconds_per_second = 1e12;
/// A time below `simulated_time_max` plus a latency must stay below 2^63.
constexpr picoseconds latency_max = simulated_time_max / 4;

caf::error check_speed(std::string_view what, const link_speed& speed) {
  if (speed.latency < 0 || speed.latency > latency_max)
    return invalid(fmt::format("the latency {} is not between 0 and 13 days", what));
  if (!(speed.bandwidth > 0))
    return invalid(fmt::format("the bandwidth {} is not more than 0", what));
  return caf::none;
}

caf::error check_odd_link(const odd_link& link, uint32_t world_size) {
  auto largest = std::max(link.a, link.b);
  if (largest >= world_size)
    return invalid(fmt::format("the link {}-{} wants a rank {}, and there are ranks 0 to {}", link.a, link.b, largest,
                               world_size - 1));
  if (link.a == link.b)
    return invalid(fmt::format("there is no link from rank {} to itself", link.a));
  if (!(link.slowdown > 0) || !std::isfinite(link.slowdown))
    return invalid(fmt::format("the link {}-{} is slowed down {} times, which is not more than 0", link.a, link.b,
                               link.slowdown));
  return caf::none;
}

} // namespace

caf::error check_network(const network& net, uint32_t world_size) {
  if (!net.hosts.empty() && net.hosts.size() != world_size)
    return invalid(fmt::format("the network has hosts for {}, and there are {}", counted(net.hosts.size(), "rank"),
                               world_size));
  for (auto host : net.hosts)
    if (host >= world_size)
      return invalid(fmt::format("there is no host {}: hosts are numbered from 0, and {} have no more than {}", host,
                                 counted(world_size, "rank"), world_size));
  RETURN_ERROR(check_speed("of a link", net.link));
  RETURN_ERROR(check_speed("inside of a host", net.inside_host));
  if (!(net.reduction_rate > 0) || !(net.copy_rate > 0))
    return invalid("the rates of reductions and copies must be more than 0");
  for (auto& link : net.odd_links)
    RETURN_ERROR(check_odd_link(link, world_size));
  return caf::none;
}

network_path path_between(const network& net, uint32_t world_size, uint32_t source, uint32_t destination) {
  ensure(source < world_size && destination < world_size && source != destination, "a path connects two ranks");
  network_path path;
  auto inside = !net.hosts.empty() && net.hosts[source] == net.hosts[destination];
  auto& speed = inside ? net.inside_host : net.link;
  auto bandwidth = speed.bandwidth;
  path.latency = speed.latency;
  path.ports = {2 * source, 2 * destination + 1};
  if (!net.hosts.empty() && !inside) {
    bandwidth = std::min(bandwidth, net.inside_host.bandwidth);
    path.length = 4;
    path.ports[2] = 2 * (world_size + net.hosts[source]);
    path.ports[3] = 2 * (world_size + net.hosts[destination]) + 1;
  }
  for (auto& link : net.odd_links)
    if (std::minmax(link.a, link.b) == std::minmax(source, destination)) {
      bandwidth /= link.slowdown;
      path.broken = path.broken || link.broken;
    }
  path.picoseconds_per_byte = picoseconds_per_second / bandwidth;
  return path;
}

uint32_t port_count(const network& net, uint32_t world_size) {
  return 2 * (world_size + (net.hosts.empty() ? 0 : *std::ranges::max_element(net.hosts) + 1));
}

std::string port_name(uint32_t port, uint32_t world_size) {
  auto inwards = port % 2 == 1;
  ensure(port < 4 * world_size, "a port is one of a rank or of its host");
  if (port < 2 * world_size)
    return fmt::format("the way {} rank {}", inwards ? "into" : "out of", port / 2);
  return fmt::format("the network card of host {}, {}", port / 2 - world_size, inwards ? "inwards" : "outwards");
}

} // namespace ringmaster
