#include "gateway/dialects/device_table.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace ringmaster::gateway {

device_table::device_table(const dialect& form, std::vector<endpoint> ports)
  : form_(form), ports_(std::move(ports)), has_places_(form.first_device_id || !ports_.empty()),
    places_(ports_.size()) {}

void device_table::update(const proto::ClusterInfo& cluster) {
  std::set<device_id> joined;
  for (auto& x : cluster.devices()) {
    learn(x.metadata());
    joined.insert(device_id{x.metadata().deviceid().value()});
  }
  std::erase_if(spares_, [&](auto& entry) { return joined.count(present(entry.first)) == 0; });
  std::erase_if(known_, [&](auto& entry) { return joined.count(entry.first) == 0 && spares_.count(entry.first) == 0; });
  if (!has_places_)
    return;
  for (auto& place : places_)
    if (place && joined.erase(*place) == 0)
      place.reset();
  for (auto device : joined) {
    auto free = std::ranges::find(places_, std::optional<device_id>{});
    if (free != places_.end())
      *free = device;
    else if (ports_.empty())
      places_.emplace_back(device);
  }
}

void device_table::listening_at(const std::vector<uint16_t>& ports) {
  ensure(ports.size() == ports_.size(), "each address of a device has a port");
  for (size_t i = 0; i < ports.size(); ++i)
    ports_[i].port = ports[i];
}

void device_table::learn(const gpu_sim::DeviceMetadata& x) {
  const auto memory = cluster_memory::of(x);
  ensure(memory.min <= memory.max, "a device's memory has a size");
  known_[memory.device] = memory;
}

void device_table::replaced(device_id lost, const gpu_sim::DeviceMetadata& spare) {
  learn(spare);
  const device_id now{spare.deviceid().value()};
  spares_[lost] = now;
  if (auto place = place_of(lost)) {
    for (auto& other : places_)
      if (other == now)
        other.reset(); // it was free there
    places_[*place] = now;
  }
}

device_id device_table::present(device_id device) const {
  std::set<device_id> seen; // a spare may have been lost, too
  for (auto i = spares_.find(device); i != spares_.end() && seen.insert(device).second; i = spares_.find(device))
    device = i->second;
  return device;
}

std::optional<size_t> device_table::place_of(device_id device) const {
  auto i = std::ranges::find(places_, std::optional{device});
  return i == places_.end() ? std::nullopt : std::optional{static_cast<size_t>(i - places_.begin())};
}

caf::expected<device_id> device_table::with_id(uint64_t id) const {
  if (!form_.first_device_id)
    return present(device_id{id});
  const auto first = *form_.first_device_id;
  if (id < first || id - first >= places_.size())
    return make_error(errc::unknown_device, fmt::format("there is no device {}; {}", id,
                                                        places_.empty() ? "no device has joined"
                                                                        : fmt::format("their ids are {} to {}", first,
                                                                                      first + places_.size() - 1)));
  return at_place(id - first);
}

caf::expected<device_id> device_table::at_place(size_t place) const {
  ensure(has_places_ && place < places_.size(), "a place is one of the list's");
  if (!places_[place])
    return make_error(errc::unknown_device, ports_.empty() ? "the device is lost, and no other has joined"
                                                           : fmt::format("no device of the cluster is at {} at present",
                                                                         text_of(ports_[place])));
  return *places_[place];
}

caf::expected<std::vector<device_id>> device_table::at_addresses(const std::vector<std::string>& addresses) const {
  std::vector<device_id> result;
  for (auto& text : addresses) {
    auto wanted = parse_endpoint(text);
    if (!wanted)
      return std::move(wanted.error());
    auto i = std::ranges::find(ports_, wanted->port, &endpoint::port);
    if (i == ports_.end())
      return invalid(fmt::format("no device is at {}: the configuration of this address lists its devices under "
                                 "\"devices\"",
                                 text));
    auto device = at_place(static_cast<size_t>(i - ports_.begin()));
    if (!device)
      return std::move(device.error());
    result.push_back(*device);
  }
  return result;
}

std::vector<device_id> device_table::placed() const {
  std::vector<device_id> result;
  for (auto& place : places_)
    if (place)
      result.push_back(*place);
  return result;
}

const cluster_memory* device_table::memory_of(device_id device) const {
  auto i = known_.find(device);
  return i == known_.end() ? nullptr : &i->second;
}

uint64_t device_table::id_for_clients(device_id device) const {
  if (!form_.first_device_id)
    return device.value;
  auto place = place_of(device);
  ensure(place.has_value(), "a device that clients see has a place");
  return *form_.first_device_id + *place;
}

cluster_memory device_table::seen_memory(cluster_memory x) const {
  if (form_.addresses) {
    const auto bytes = std::min(form_.addresses->bytes, x.max - x.min);
    x.min = form_.addresses->base;
    x.max = x.min + bytes;
  }
  return x;
}

caf::expected<uint64_t> device_table::address(device_id device, uint64_t address, uint64_t bytes) const {
  auto* memory = memory_of(device);
  if (!form_.addresses) {
    for (auto& [lost, spare] : spares_)
      if (auto* former = memory_of(lost);
          former && memory && present(lost) == device && address >= former->min && address < former->max)
        return memory->min + (address - former->min);
    return address; // the device checks it
  }
  if (memory == nullptr)
    return make_error(errc::unknown_device, fmt::format("device 0x{:x} is lost", device));
  const auto seen = seen_memory(*memory);
  if (address < seen.min || address > seen.max || bytes > seen.max - address)
    return make_error(errc::out_of_range,
                      fmt::format("{:#x} bytes at {:#x} are not within the memory of a device, which is [{:#x}, {:#x})",
                                  bytes, address, seen.min, seen.max));
  return memory->min + (address - seen.min);
}

} // namespace ringmaster::gateway
