#include "runtime/coordination/communicator_registry.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

caf::error communicator_registry::admit(size_t more) const {
  ensure(alive_.size() <= alive_max_, "no more communicators are alive than are admitted");
  if (alive_.size() + more <= alive_max_)
    return caf::none;
  return make_error(errc::too_many,
                    fmt::format("{} communicators are alive, {} more would be over the limit of {}; destroy some",
                                alive_.size(), more, alive_max_));
}

communicator_id communicator_registry::new_id() {
  const auto id = ids_->new_communicator();
  ensure(!alive_.contains(id) && !failed_.contains(id), "a communicator's number is given once");
  return id;
}

void communicator_registry::made(communicator_id id, known_communicator what) {
  ensure(!failed_.contains(id), "a communicator that has failed is not made again");
  ensure(what.lost.empty(), "a new communicator has lost no device");
  alive_[id] = std::move(what);
  ensure(alive_.size() <= alive_max_, "no more communicators are alive than are admitted");
}

std::optional<known_communicator> communicator_registry::ended(communicator_id id, const caf::error& reason) {
  constexpr size_t failed_max = 4096;
  auto found = alive_.extract(id);
  if (!found)
    return std::nullopt;
  ensure(failed_.count(id) == 0, "a communicator ends once");
  ensure(ids_->was_given(id), "a communicator has a number that was given");
  if (reason)
    failed_[id] = reason;
  if (failed_.size() > failed_max)
    failed_.erase(failed_.begin());
  ensure(failed_.size() <= failed_max, "only the latest failures are kept");
  return std::move(found.mapped());
}

proto::StoredCommunicator* communicator_registry::stored(communicator_id id) {
  auto i = alive_.find(id);
  return i == alive_.end() ? nullptr : &i->second.stored;
}

std::vector<communicator_id> communicator_registry::made_by(uint64_t caller, uint64_t call_number) const {
  std::vector<communicator_id> result;
  for (auto& [id, communicator] : alive_)
    if (caller != 0 && communicator.stored.caller() == caller && communicator.stored.call_number() == call_number)
      result.push_back(id);
  std::ranges::stable_sort(result, {}, [this](auto id) { return alive_.at(id).stored.color(); });
  return result;
}

const known_communicator* communicator_registry::find(communicator_id id) const {
  auto i = alive_.find(id);
  return i == alive_.end() ? nullptr : &i->second;
}

caf::expected<const known_communicator*> communicator_registry::known(communicator_id id) const {
  if (auto found = find(id))
    return found;
  auto text = fmt::format("there is no communicator {}: CommInit makes one and returns its number", id);
  if (auto failed = failed_.find(id); failed != failed_.end())
    text = fmt::format("communicator {} has failed: {}", id, render(failed->second));
  else if (ids_->was_given(id))
    text = fmt::format("communicator {} has been destroyed", id);
  return make_error(errc::unknown_communicator, std::move(text));
}

bool communicator_registry::was_destroyed(communicator_id id) const {
  return find(id) == nullptr && failed_.count(id) == 0 && ids_->was_given(id);
}

void communicator_registry::met(communicator_id id, uint64_t operations, uint64_t ended_ns) {
  if (auto i = alive_.find(id); i != alive_.end()) {
    i->second.operations_met += operations;
    i->second.met_ended_ns = std::max(i->second.met_ended_ns, ended_ns);
  }
}

bool communicator_registry::all_replace(const std::set<communicator_id>& ids) const {
  return std::all_of(ids.begin(), ids.end(), [&](auto id) {
    auto found = find(id);
    return found != nullptr && found->policy == proto::REPLACE;
  });
}

void communicator_registry::member_lost(device_id device, const std::set<communicator_id>& ids) {
  for (auto id : ids)
    if (auto i = alive_.find(id); i != alive_.end())
      i->second.lost.insert(device);
}

void communicator_registry::place_filled(device_id device, communicator_id id) {
  if (auto i = alive_.find(id); i != alive_.end())
    i->second.lost.erase(device);
}

bool communicator_registry::inputs_wanted(device_id device) const {
  return std::any_of(alive_.begin(), alive_.end(), [=](auto& x) { return x.second.lost.count(device) != 0; });
}

} // namespace ringmaster
