#pragma once

#include "actors/devices/device.hpp"
#include "actors/hosts/node.hpp"
#include "actors/hosts/relay.hpp"
#include "tests/support/simulated_host.hpp"

#include <filesystem>

namespace ringmaster::test {

struct simulation_options {
  uint64_t seed = 1;
  uint32_t devices = 4;
  uint64_t memory_bytes = 1u << 16;
  uint64_t slice_bytes = 64; ///< Small, so that kills fall between the slices of a block.
  bool share_memory = true;  ///< Operations may be joint ones, where the algorithm is one for it.
  bool offer_memory = true;  ///< false: bytes travel in messages, as between hosts.
  proto::FailurePolicy policy = proto::SHRINK;
  uint64_t meet_bytes = 0; ///< The largest input for which ranks would meet in memory.
  uint32_t relays = 0;     ///< Not 0: communicators speak with streams by relays, that many, as with other processes'.
  uint32_t devices_a_host = 0;  ///< By their numbers; 0: all are on one host.
  bool supervised = false;      ///< Devices are a node's, and come back when they die.
  uint32_t hurry_per_mille = 0; ///< How often time passes although messages are pending: a slow machine.
  bool journaled = false;       ///< In memory; see `history`.
};

simulation_options with_devices(uint32_t devices, uint64_t seed = 1);

/// A whole cluster in one thread: virtual time, and whose message is next is drawn from the seed.
class simulated_cluster : public deterministic_system, public simulated_host {
public:
  explicit simulated_cluster(const simulation_options& opts);
  ~simulated_cluster();

  bool step() override;
  uint32_t devices_a_host() const override { return options.devices_a_host; }
  caf::scoped_actor& client() override { return self; }

  void add_devices(uint32_t count);

  simulation_options options;
  std::vector<relay_actor> relays;
  node_actor host_node;
  std::filesystem::path dir;
  device_options device_settings;
  std::vector<device_actor> devices;
};

} // namespace ringmaster::test
