#pragma once

#include <caf/error.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ringmaster {

/// Virtual time. A whole number, so that sums do not depend on their order and what happens at the same moment does so
/// exactly: with doubles, two messages that become possible together by different ways would differ in the last bit and
/// take turns by chance. A byte at 50 GB/s takes 20 ps, so uniform results are exact; where a message's time on the
/// wire is no whole number, it is rounded by half a picosecond at most. 2^62 ps are 53 days.
using picoseconds = int64_t;

inline constexpr picoseconds simulated_time_max = picoseconds{1} << 62;

struct link_speed {
  picoseconds latency = 5'000'000;
  double bandwidth = 50e9; ///< Bytes a second; NVIDIA's ConnectX-7 has 400 Gbit/s.
};

/// A link between two ranks that is not like the others, in both directions.
struct odd_link {
  uint32_t a = 0, b = 0;
  double slowdown = 1; ///< Its bandwidth is divided by this.
  bool broken = false; ///< It never carries anything.
};

/// What the ranks are connected by. Each rank has one port out and one port in, which are independent of each other.
/// With several hosts, each host has one network card, which all its ranks share for what goes to and comes from other
/// hosts, again independently for the two directions.
struct network {
  link_speed link{};                        ///< Between any two ranks; with several hosts, between hosts.
  std::vector<uint32_t> hosts{};            ///< By rank, as `plan_request` has them; empty: all on one.
  link_speed inside_host{1'000'000, 300e9}; ///< With several hosts; about what NVLink of an A100 carries each way.
  std::vector<odd_link> odd_links{};
  double reduction_rate = std::numeric_limits<double>::infinity(); ///< Bytes a second of a rank, of the incoming block.
  double copy_rate = std::numeric_limits<double>::infinity();
};

/// Errors: invalid_argument, with a sentence: hosts of more or fewer ranks than there are, ranks that do not exist,
/// numbers that are not positive.
caf::error check_network(const network& net, uint32_t world_size);

/// The ports and network cards that a message occupies: rank r's port out is 2r and its port in 2r + 1, and the network
/// card of host h behind all ranks' ports in the same manner.
struct network_path {
  picoseconds latency = 0;
  double picoseconds_per_byte = 0;
  bool broken = false;
  uint32_t length = 2; ///< How many of `ports` there are.
  std::array<uint32_t, 4> ports{};

  /// Whether it leads from one host to another.
  bool passes_network_cards() const { return length > 2; }
};

/// For a network that has passed `check_network`.
network_path path_between(const network& net, uint32_t world_size, uint32_t source, uint32_t destination);

uint32_t port_count(const network& net, uint32_t world_size);
/// "the way out of rank 3", "the network card of host 0, inwards".
std::string port_name(uint32_t port, uint32_t world_size);

} // namespace ringmaster
