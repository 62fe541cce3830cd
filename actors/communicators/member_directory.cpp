#include "actors/communicators/member_directory.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/waiting_ranks.hpp"

#include <algorithm>

namespace ringmaster {

void member_directory::add(device_id device, const device_handle& handle) {
  ensure(device != device_id{} && handle.device != nullptr && handle.stream != nullptr,
         "a member has a device and a stream");
  handles_[device] = handle;
  if (handle.device->node() != self_->node() && handle.memory != nullptr && options_.neighbours != nullptr)
    if (auto memory = options_.neighbours->find(*handle.memory))
      memories_[device] = std::move(*memory);
  self_->monitor(caf::actor_cast<caf::actor>(handle.device));
}

std::vector<device_id> member_directory::set_ranks(const std::vector<rank_device>& ranks) {
  std::vector<device_id> gone;
  const auto has_rank = [&](device_id device) {
    return std::any_of(ranks.begin(), ranks.end(), [=](auto& x) { return x.id() == device && !x.lost; });
  };
  for (auto& [device, handle] : handles_)
    if (!has_rank(device)) {
      self_->demonitor(handle.device->address());
      gone.push_back(device);
    }
  for (auto device : gone) {
    handles_.erase(device);
    memories_.erase(device);
  }
  ensure(handles_.size() == ranks.size(), "every rank of an open epoch has its handle");
  if (options_.devices_a_host == 0) {
    hosts_ = rank_hosts(handles_of(ranks), options_.share_memory);
  } else {
    std::vector<uint32_t> by_number;
    for (auto& x : ranks)
      by_number.push_back(static_cast<uint32_t>(x.id().value / options_.devices_a_host));
    hosts_ = numbered_hosts(by_number);
  }
  ensure(hosts_.empty() || hosts_.size() == ranks.size(), "every rank lies on a host");
  return gone;
}

bool member_directory::all_in_reach(const std::vector<rank_device>& ranks) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](auto& x) {
    return memories_.count(x.id()) != 0 || handle_of(x.id()).device->node() == self_->node();
  });
}

void member_directory::stop_watching() {
  if (options_.coordinator)
    self_->demonitor(options_.coordinator.address());
  for (auto& [device, handle] : handles_)
    self_->demonitor(handle.device->address());
}

const device_handle& member_directory::handle_of(device_id device) const {
  const auto known = handles_.find(device);
  ensure(known != handles_.end(), "a member has its handle");
  return known->second;
}

device_handles member_directory::handles_of(const std::vector<rank_device>& ranks) const {
  device_handles result;
  result.reserve(ranks.size());
  for (auto& x : ranks)
    result.push_back(handle_of(x.id()));
  return result;
}

std::optional<device_id> member_directory::device_of(const caf::actor_addr& actor) const {
  const auto i = std::find_if(handles_.begin(), handles_.end(),
                              [&](auto& x) { return x.second.device->address() == actor; });
  return i == handles_.end() ? std::nullopt : std::optional{i->first};
}

std::vector<device_id> member_directory::in_process_of(device_id device) const {
  const auto process = handle_of(device).device->node();
  std::vector<device_id> result;
  for (auto& [other, handle] : handles_)
    if (handle.device->node() == process)
      result.push_back(other);
  return result;
}

std::vector<caf::strong_actor_ptr> member_directory::relays_elsewhere(const std::vector<rank_device>& ranks) const {
  std::vector<caf::strong_actor_ptr> result;
  for (auto& x : ranks) {
    const auto known = handles_.find(x.id());
    const auto relay = x.lost || known == handles_.end() ? nullptr : known->second.relay;
    if (relay && relay->node() != self_->node() && std::find(result.begin(), result.end(), relay) == result.end())
      result.push_back(relay);
  }
  return result;
}

audience member_directory::streams_of(const std::vector<device_id>& devices) const {
  audience result{self_};
  for (auto device : devices)
    result.add(device, handle_of(device), options_.speak_by_relays);
  return result;
}

audience member_directory::devices_of(const std::vector<device_id>& devices) const {
  audience result{self_, audience::who::devices};
  for (auto device : devices)
    result.add(device, handle_of(device), options_.speak_by_relays);
  return result;
}

std::shared_ptr<mapped_memory> member_directory::memory_of(device_id device) const {
  const auto known = memories_.find(device);
  return known == memories_.end() ? nullptr : known->second;
}

} // namespace ringmaster
