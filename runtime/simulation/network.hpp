#pragma once

#include <caf/error.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ringmaster {

/// Virtual time. It is an integer, so that sums do not depend on their order and simultaneous events have equal times:
/// with doubles, rounding would decide which of two messages goes first. A byte at 50 GB/s takes 20 ps, so results of
/// uniform networks are exact; other times are rounded by at most half a picosecond. 2^62 ps are 53 days.
using picoseconds = int64_t;

inline constexpr picoseconds simulated_time_max = picoseconds{1} << 62;

struct link_speed {
  picoseconds latency = 5'000'000;
  double bandwidth = 50e9; ///< Bytes per second; NVIDIA's ConnectX-7 has 400 Gbit/s.
};

/// A link between two ranks that differs from the others, in both directions.
struct odd_link {
  uint32_t a = 0, b = 0;
  double slowdown = 1; ///< Its bandwidth is divided by this.
  bool broken = false; ///< It carries no message.
};

/// The network of the ranks. Each rank has an outgoing and an incoming port, which are independent. With several hosts,
/// each host has one network card that its ranks share for messages to and from other hosts, independently for the two
/// directions.
struct network {
  link_speed link{};                        ///< Between any two ranks; with several hosts, between hosts.
  std::vector<uint32_t> hosts{};            ///< By rank, as in `plan_request`; empty: one host.
  link_speed inside_host{1'000'000, 300e9}; ///< With several hosts; about one direction of an A100's NVLink.
  std::vector<odd_link> odd_links{};
  double reduction_rate = std::numeric_limits<double>::infinity(); ///< Bytes of incoming blocks per second and rank.
  double copy_rate = std::numeric_limits<double>::infinity();
};

/// Errors: invalid_argument for hosts of another number of ranks, ranks that do not exist, numbers that are not
/// positive.
caf::error check_network(const network& net, uint32_t world_size);

/// The ports and network cards that a message occupies. Rank r's outgoing port is 2r and its incoming one 2r + 1; the
/// network cards of hosts follow in the same manner.
struct network_path {
  picoseconds latency = 0;
  double picoseconds_per_byte = 0;
  bool broken = false;
  uint32_t length = 2; ///< The number of `ports`.
  std::array<uint32_t, 4> ports{};

  /// Whether it connects two hosts.
  bool passes_network_cards() const { return length > 2; }
};

/// Requires a network that passed `check_network`.
network_path path_between(const network& net, uint32_t world_size, uint32_t source, uint32_t destination);

uint32_t port_count(const network& net, uint32_t world_size);
/// "the way out of rank 3", "the network card of host 0, inwards".
std::string port_name(uint32_t port, uint32_t world_size);

} // namespace ringmaster
