#include "runtime/coordination/access_rules.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster {

std::string calling_process::maker() const {
  if (who.as != role::client && who.as != role::operating && who.as != role::rank)
    return {};
  return who.name.empty() || who.as == role::rank ? "process " + process : "name " + who.name;
}

void access_rules::made(communicator_id what, std::string maker) {
  makers_[what] = std::move(maker);
}

void access_rules::allocated(owned_range what, uint64_t bytes, std::string maker) {
  allocations_[what] = {bytes, std::move(maker)};
}

void access_rules::freed(owned_range what) {
  allocations_.erase(what);
}

void access_rules::gone(device_id device) {
  std::erase_if(allocations_, [&](auto& x) { return x.first.device == device; });
}

bool access_rules::may_use(const calling_process& x, communicator_id what, bool has_own_device) const {
  if (!x.is_confined())
    return true;
  const auto maker = makers_.find(what);
  return maker == makers_.end() || maker->second == x.maker() || (x.who.as == role::rank && has_own_device);
}

bool access_rules::may_use(const calling_process& x, const device_place& what) const {
  if (!x.is_confined())
    return true;
  const bool is_own = x.who.as == role::rank && what.process == x.process;
  return is_own || what.communicators.empty() || std::ranges::any_of(what.communicators, [&](auto id) {
           const auto maker = makers_.find(id);
           return maker != makers_.end() && maker->second == x.maker();
         });
}

bool access_rules::may_use(const calling_process& x, owned_range what, uint64_t bytes) const {
  if (!x.is_confined())
    return true;
  const auto maker = x.maker();
  auto next = allocations_.upper_bound(what);
  if (next != allocations_.begin() && std::prev(next)->first.device == what.device)
    --next; // it may reach into the range
  for (; next != allocations_.end() && next->first.device == what.device; ++next) {
    const auto start = next->first.address;
    if (start > what.address && start - what.address >= bytes)
      break;
    const bool overlaps = start >= what.address || what.address - start < next->second.bytes;
    if (overlaps && next->second.maker != maker)
      return false;
  }
  return true;
}

} // namespace ringmaster
