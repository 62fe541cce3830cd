#pragma once

#include "gateway/dialects/dialect.hpp"
#include "messages/cluster.pb.h"
#include "messages/ids.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::gateway {

/// A device of the cluster and its memory, [min, max).
struct cluster_memory {
  device_id device;
  uint64_t min = 0, max = 0;

  static cluster_memory of(const gpu_sim::DeviceMetadata& x) {
    return {device_id{x.deviceid().value()}, x.minmemaddr().value(), x.maxmemaddr().value()};
  }
};

/// The devices of the cluster as clients of one listener know them: their ids, addresses of memory, and ports. Where
/// the dialect numbers devices or they have ports, each of the cluster's devices has a place in that list; a place
/// whose device is lost gets another one. A device that a spare has replaced stands for the spare. Pure.
class device_table {
public:
  device_table(const dialect& form, std::vector<endpoint> ports);

  /// Whether ids are places in a list, so that the table must know the cluster's devices.
  bool has_places() const noexcept { return has_places_; }
  /// Whether every device of the cluster gets a place, sooner or later.
  bool has_a_place_for_each() const noexcept { return ports_.empty(); }
  /// The ports that its addresses have got, in the order of the list.
  void listening_at(const std::vector<uint16_t>& ports);
  /// All devices of the cluster. Devices that are not in it lose their places, and others get those.
  void update(const proto::ClusterInfo& cluster);
  /// Devices that a communicator has.
  void learn(const gpu_sim::DeviceMetadata& x);
  /// A spare has the lost device's rank, and its place.
  void replaced(device_id lost, const gpu_sim::DeviceMetadata& spare);

  /// The device with this id. Errors: unknown_device, with the ids that exist.
  caf::expected<device_id> with_id(uint64_t id) const;
  /// The device at this place of the list. Errors: unknown_device: no device has it at present.
  caf::expected<device_id> at_place(size_t place) const;
  /// The devices at these addresses, "host:port"; only the port is compared. Errors: invalid_argument.
  caf::expected<std::vector<device_id>> at_addresses(const std::vector<std::string>& addresses) const;
  /// The devices that have a place, in the list's order.
  std::vector<device_id> placed() const;
  const cluster_memory* memory_of(device_id device) const;

  /// What clients see of a device.
  uint64_t id_for_clients(device_id device) const;
  cluster_memory seen_memory(cluster_memory x) const;
  /// The cluster's address of a range that a client names; one in the memory of a lost device is in its spare's.
  /// Errors: out_of_range, with the window.
  caf::expected<uint64_t> address(device_id device, uint64_t address, uint64_t bytes) const;

private:
  device_id present(device_id device) const;
  std::optional<size_t> place_of(device_id device) const;

  const dialect& form_;
  std::vector<endpoint> ports_;
  const bool has_places_;
  std::map<device_id, cluster_memory> known_;
  std::map<device_id, device_id> spares_; ///< By the lost device.
  std::vector<std::optional<device_id>> places_;
};

} // namespace ringmaster::gateway
