#include "runtime/coordination/ownership.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

void ownership::made(client_id owner, communicator_id what) {
  ensure(owner != client_id{}, "an owner is a known client");
  ended(what);
  communicators_[what] = owner;
  const bool is_new = owners_[owner].communicators.insert(what).second;
  ensure(is_new, "a communicator has one owner");
}

void ownership::allocated(client_id owner, owned_range what) {
  ensure(owner != client_id{}, "an owner is a known client");
  freed(what);
  ranges_[what] = owner;
  const bool is_new = owners_[owner].ranges.insert(what).second;
  ensure(is_new, "a range has one owner");
}

void ownership::ended(communicator_id what) {
  auto found = communicators_.extract(what);
  if (!found)
    return;
  const auto erased = owners_[found.mapped()].communicators.erase(what);
  ensure(erased == 1, "an owner knows its communicators");
  drop_if_empty(found.mapped());
}

void ownership::freed(owned_range what) {
  auto found = ranges_.extract(what);
  if (!found)
    return;
  const auto erased = owners_[found.mapped()].ranges.erase(what);
  ensure(erased == 1, "an owner knows its ranges");
  drop_if_empty(found.mapped());
}

void ownership::gone(device_id device) {
  std::vector<owned_range> lost;
  for (auto i = ranges_.lower_bound({device, 0}); i != ranges_.end() && i->first.device == device; ++i)
    lost.push_back(i->first);
  for (auto& x : lost)
    freed(x);
  const auto next = ranges_.lower_bound({device, 0});
  ensure(next == ranges_.end() || next->first.device != device, "no range of a removed device is owned");
}

std::optional<client_id> ownership::owner_of(communicator_id what) const {
  auto i = communicators_.find(what);
  return i == communicators_.end() ? std::nullopt : std::optional{i->second};
}

ownership::belongings ownership::take(client_id owner) {
  auto found = owners_.extract(owner);
  if (!found)
    return {};
  for (auto x : found.mapped().communicators) {
    const auto erased = communicators_.erase(x);
    ensure(erased == 1, "a communicator knows its owner");
  }
  for (auto& x : found.mapped().ranges) {
    const auto erased = ranges_.erase(x);
    ensure(erased == 1, "a range knows its owner");
  }
  ensure(!owns_anything(owner), "a client that has ended owns nothing");
  return std::move(found.mapped());
}

void ownership::drop_if_empty(client_id owner) {
  auto i = owners_.find(owner);
  if (i != owners_.end() && i->second.communicators.empty() && i->second.ranges.empty())
    owners_.erase(i);
}

} // namespace ringmaster
