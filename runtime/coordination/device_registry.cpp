#include "runtime/coordination/device_registry.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace ringmaster {

bool within(const gpu_sim::DeviceMetadata& device, uint64_t address, uint64_t bytes) {
  auto min = device.minmemaddr().value();
  auto max = device.maxmemaddr().value();
  return address >= min && address <= max && bytes <= max - address;
}

caf::expected<node_id> device_registry::node_joined(proto::NodeJoinRequest about, caf::strong_actor_ptr handle,
                                                    uint64_t joined_ns) {
  for (auto& [id, other] : nodes_)
    if (other.about.name() == about.name())
      return make_error(errc::in_use,
                        fmt::format("the name \"{}\" is taken: process {} on {} joined with it and has not left; give "
                                    "this node another one (--node.name), or wait until that one is noticed to be gone",
                                    about.name(), other.about.pid(), other.about.hostname()));
  auto id = ids_->new_node();
  ensure(nodes_.count(id) == 0, "a node gets a number of its own");
  ensure(id != node_id{}, "a node's number is not 0");
  nodes_[id] = {std::move(about), std::move(handle), joined_ns, false};
  return id;
}

void device_registry::node_rejoined(node_id id, proto::NodeJoinRequest about, caf::strong_actor_ptr handle,
                                    uint64_t joined_ns) {
  ensure(!nodes_.contains(id), "a node comes back once");
  nodes_[id] = {std::move(about), std::move(handle), joined_ns, false};
}

std::optional<known_node> device_registry::node_gone(node_id id) {
  auto found = nodes_.extract(id);
  if (found)
    for (auto& [other, node] : nodes_)
      node.apart.erase(found.mapped().about.name());
  return found ? std::optional{std::move(found.mapped())} : std::nullopt;
}

void device_registry::node_apart(node_id id, const std::string& peer, const caf::error& why) {
  auto node = nodes_.find(id);
  if (node == nodes_.end() || find_node(peer) == nullptr)
    return; // one of them has left the cluster
  if (why)
    node->second.apart[peer] = render(why);
  else
    node->second.apart.erase(peer);
}

void device_registry::set_draining(node_id id, bool draining) {
  if (auto node = nodes_.find(id); node != nodes_.end())
    node->second.draining = draining;
}

bool device_registry::is_draining(const known_device& x) const {
  auto node = nodes_.find(x.node);
  return node != nodes_.end() && node->second.draining;
}

std::vector<known_node> device_registry::apart_from_each_other(node_id one, const std::string& other) const {
  auto first = nodes_.find(one);
  auto second = find_node(other);
  bool both = first != nodes_.end() && second != nullptr && first->second.apart.count(other) != 0
              && second->apart.count(first->second.about.name()) != 0;
  return both ? std::vector{first->second, *second} : std::vector<known_node>{};
}

const known_node* device_registry::find_node(const std::string& name) const {
  for (auto& [id, node] : nodes_)
    if (node.about.name() == name)
      return &node;
  return nullptr;
}

std::set<communicator_id> device_registry::shared_by(node_id one, const std::string& other) const {
  std::set<communicator_id> on_one, on_other, result;
  for (auto& [id, device] : devices_) {
    if (device.node == one)
      on_one.insert(device.communicators.begin(), device.communicators.end());
    else if (name_of(device.node) == other)
      on_other.insert(device.communicators.begin(), device.communicators.end());
  }
  std::set_intersection(on_one.begin(), on_one.end(), on_other.begin(), on_other.end(),
                        std::inserter(result, result.end()));
  return result;
}

std::string device_registry::name_of(node_id id) const {
  auto i = nodes_.find(id);
  return i == nodes_.end() ? std::string{} : i->second.about.name();
}

std::string device_registry::place_of(node_id id) const {
  auto i = nodes_.find(id);
  return i == nodes_.end() ? std::string{} : place_text(i->second.about);
}

void device_registry::joined(known_device device) {
  auto id = id_of(device.metadata);
  ensure(device.communicators.empty(), "a device that joins is in no communicator");
  ids_->taken(id); // one may have chosen its own
  if (tells_places_)
    device.metadata.set_place(place_of(device.node));
  devices_[id] = std::move(device);
}

void device_registry::tell_places() {
  tells_places_ = true;
  for (auto& [id, device] : devices_)
    device.metadata.set_place(place_of(device.node));
}

std::optional<known_device> device_registry::gone(device_id id, const std::string& cause) {
  constexpr size_t gone_max = 4096;
  auto found = devices_.extract(id);
  if (!found)
    return std::nullopt;
  ensure(devices_.count(id) == 0, "a device that is gone is not known");
  gone_[id] = cause;
  if (gone_.size() > gone_max)
    gone_.erase(gone_.begin());
  ensure(gone_.size() <= gone_max, "only the latest causes are kept");
  return std::move(found.mapped());
}

const known_device* device_registry::find(device_id id) const {
  auto i = devices_.find(id);
  return i == devices_.end() ? nullptr : &i->second;
}

std::string device_registry::text_of(device_id id) const {
  auto device = find(id);
  return device == nullptr ? fmt::format("device 0x{:x}", id) : ringmaster::text_of(device->metadata);
}

caf::expected<const known_device*> device_registry::known(device_id id) const {
  if (auto device = find(id))
    return device;
  if (auto gone = gone_.find(id); gone != gone_.end())
    return with_cause(errc::unknown_device, fmt::format("device 0x{:x} has died", id), gone->second);
  return make_error(errc::unknown_device,
                    fmt::format("there is no device 0x{:x}; the cluster has {} devices", id, devices_.size()));
}

void device_registry::take(device_id id, communicator_id communicator) {
  auto i = devices_.find(id);
  ensure(i != devices_.end(), "a device that is taken is in the cluster");
  const bool is_new = i->second.communicators.insert(communicator).second;
  ensure(is_new, "a device is in a communicator once");
}

void device_registry::leave(device_id id, communicator_id communicator) {
  if (auto i = devices_.find(id); i != devices_.end())
    i->second.communicators.erase(communicator);
}

device_ids device_registry::leave(communicator_id communicator) {
  auto members = members_of(communicator);
  for (auto id : members)
    leave(id, communicator);
  ensure(members_of(communicator).empty(), "a communicator that was left has no members");
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
                                           [this](auto& x) { return is_free(x.second); }));
}

caf::expected<device_ids> device_registry::free_devices(size_t wanted, const std::string& who) const {
  if (auto free = free_count(); free < wanted)
    return make_error(
      errc::too_few_devices,
      fmt::format("{} asks for {} devices, but {} are free: the cluster has {}, {} of them in communicators", who,
                  wanted, free, devices_.size(), devices_.size() - free));
  std::map<std::string, device_id> first_of_host;
  std::map<node_id, device_id> first_of_node;
  auto host_of = [this](const known_device& x) {
    auto node = nodes_.find(x.node);
    return node == nodes_.end() ? std::string{} : node->second.about.hostname();
  };
  using place = std::tuple<device_id, device_id, device_id>;
  std::vector<place> places;
  for (auto& [id, device] : devices_) // by id: the first seen is the lowest
    if (is_free(device))
      places.emplace_back(first_of_host.emplace(host_of(device), id).first->second,
                          first_of_node.emplace(device.node, id).first->second, id);
  std::sort(places.begin(), places.end());
  device_ids result;
  for (auto& x : places)
    if (result.size() < wanted)
      result.push_back(std::get<2>(x));
  ensure(result.size() == wanted, "all free devices that were counted are found");
  return result;
}

caf::error device_registry::check(const std::vector<device_ids>& groups) const {
  for (auto& ranks : groups) {
    std::map<device_id, size_t> places;
    for (auto id : ranks) {
      if (auto there = known(id); !there)
        return std::move(there.error());
      else if (is_draining(**there))
        return make_error(errc::in_use, fmt::format("device 0x{:x} is about to leave: node {} is drained", id,
                                                    name_of((*there)->node)));
      auto rank = places.size();
      if (auto [i, added] = places.emplace(id, rank); !added)
        return invalid(fmt::format("device 0x{:x} would be rank {} and rank {} of one communicator", id, i->second,
                                   rank));
    }
  }
  return caf::none;
}

caf::error device_registry::check_free(const device_ids& which) const {
  for (auto id : which) {
    TRY(device, known(id));
    if (!(*device)->communicators.empty())
      return make_error(errc::in_use, fmt::format("device 0x{:x} is in communicator {} already", id,
                                                  *(*device)->communicators.begin()));
  }
  return caf::none;
}

} // namespace ringmaster
