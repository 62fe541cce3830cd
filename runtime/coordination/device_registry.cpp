#include "runtime/coordination/device_registry.hpp"

#include "messages/errc.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

bool within(const gpu_sim::DeviceMetadata& device, uint64_t address, uint64_t bytes) {
  auto min = device.minmemaddr().value();
  auto max = device.maxmemaddr().value();
  return address >= min && address <= max && bytes <= max - address;
}

void device_registry::start_ids_above(node_id nodes, device_id devices) {
  highest_node_ = nodes;
  highest_ = devices;
}

node_id device_registry::node_joined(proto::NodeJoinRequest about, caf::strong_actor_ptr handle) {
  auto own = about.name();
  auto taken = [&] {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](auto& x) { return x.second.about.name() == about.name(); });
  };
  for (int next = 2; taken(); ++next)
    about.set_name(fmt::format("{}-{}", own, next));
  ++highest_node_.value;
  nodes_[highest_node_] = {std::move(about), std::move(handle)};
  return highest_node_;
}

std::optional<known_node> device_registry::node_gone(node_id id) {
  auto found = nodes_.extract(id);
  return found ? std::optional{std::move(found.mapped())} : std::nullopt;
}

std::string device_registry::name_of(node_id id) const {
  auto i = nodes_.find(id);
  return i == nodes_.end() ? std::string{} : i->second.about.name();
}

device_id device_registry::give_id(device_id wanted) {
  auto id = wanted.value != 0 && given_.count(wanted) == 0 ? wanted : device_id{highest_.value + 1};
  highest_ = std::max(highest_, id);
  given_.insert(id);
  return id;
}

void device_registry::joined(known_device device) {
  auto id = id_of(device.metadata);
  given_.insert(id); // one that chose its own
  highest_ = std::max(highest_, id);
  devices_[id] = std::move(device);
}

std::optional<known_device> device_registry::gone(device_id id, const std::string& cause) {
  constexpr size_t gone_max = 4096;
  auto found = devices_.extract(id);
  if (!found)
    return std::nullopt;
  gone_[id] = cause;
  if (gone_.size() > gone_max)
    gone_.erase(gone_.begin());
  return std::move(found.mapped());
}

const known_device* device_registry::find(device_id id) const {
  auto i = devices_.find(id);
  return i == devices_.end() ? nullptr : &i->second;
}

caf::expected<const known_device*> device_registry::known(device_id id) const {
  if (auto device = find(id))
    return device;
  if (auto gone = gone_.find(id); gone != gone_.end())
    return make_error(errc::unknown_device, fmt::format("device 0x{:x} has died: {}", id, gone->second));
  return make_error(errc::unknown_device,
                    fmt::format("there is no device 0x{:x}; {} devices are here", id, devices_.size()));
}

void device_registry::take(device_id id, communicator_id communicator) {
  if (auto i = devices_.find(id); i != devices_.end())
    i->second.communicators.insert(communicator);
}

void device_registry::leave(device_id id, communicator_id communicator) {
  if (auto i = devices_.find(id); i != devices_.end())
    i->second.communicators.erase(communicator);
}

device_ids device_registry::leave(communicator_id communicator) {
  auto members = members_of(communicator);
  for (auto id : members)
    leave(id, communicator);
  return members;
}

device_ids device_registry::members_of(communicator_id communicator) const {
  device_ids result;
  for (auto& [id, device] : devices_)
    if (device.communicators.count(communicator) != 0)
      result.push_back(id);
  return result;
}

size_t device_registry::free_count() const {
  return static_cast<size_t>(std::count_if(devices_.begin(), devices_.end(),
                                           [](auto& x) { return x.second.communicators.empty(); }));
}

caf::expected<device_ids> device_registry::free_devices(size_t wanted, const std::string& who) const {
  if (auto free = free_count(); free < wanted)
    return make_error(errc::too_few_devices,
                      fmt::format("{} asks for {} devices, but {} are free: {} are here, {} of them in communicators",
                                  who, wanted, free, devices_.size(), devices_.size() - free));
  device_ids result;
  for (auto& [id, device] : devices_)
    if (result.size() < wanted && device.communicators.empty())
      result.push_back(id);
  return result;
}

caf::error device_registry::check(const std::vector<device_ids>& groups) const {
  for (auto& ranks : groups) {
    std::map<device_id, size_t> places;
    for (auto id : ranks) {
      if (auto there = known(id); !there)
        return std::move(there.error());
      auto rank = places.size();
      if (auto [i, added] = places.emplace(id, rank); !added)
        return make_error(errc::invalid_argument,
                          fmt::format("device 0x{:x} would be rank {} and rank {} of one communicator", id, i->second,
                                      rank));
    }
  }
  return caf::none;
}

} // namespace ringmaster
