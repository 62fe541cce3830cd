#include "runtime/epochs/rank_history.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/admission.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace ringmaster {

static_assert(rank_history::epochs_max == admission::history_max, "calls of ranks are for epochs that both know");

bool rank_history::contains(device_id device) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == device && !x.lost; });
}

std::vector<device_id> rank_history::present() const {
  std::vector<device_id> result;
  for (auto& x : ranks_)
    if (!x.lost)
      result.push_back(x.id());
  return result;
}

std::vector<rank_device>::iterator rank_history::find(device_id device) {
  return std::find_if(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == device; });
}

size_t rank_history::rank_of(device_id device) const {
  const auto i = std::find_if(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == device; });
  return static_cast<size_t>(i - ranks_.begin());
}

std::string rank_history::name_of(device_id device) const {
  const auto rank = rank_of(device);
  return rank == ranks_.size() ? fmt::format("device 0x{:x}", device) : text_of(ranks_[rank].metadata);
}

size_t rank_history::known_rank_of(device_id device) const {
  auto& known = by_epoch_.rbegin()->second;
  const auto i = std::find_if(known.begin(), known.end(), [=](auto& x) { return x.id() == device; });
  return i == known.end() ? rank_of(device) : static_cast<size_t>(i - known.begin());
}

const std::vector<rank_device>* rank_history::in(epoch_number epoch) const {
  const auto i = by_epoch_.find(epoch);
  return i == by_epoch_.end() ? nullptr : &i->second;
}

std::vector<rank_device> rank_history::in_with_dropped(epoch_number epoch) const {
  ensure(by_epoch_.count(epoch) != 0, "the ranks of the epoch are remembered");
  auto result = by_epoch_.at(epoch);
  for (auto& x : result)
    x.dropped = rank_of(x.id()) == ranks_.size();
  return result;
}

void rank_history::mark_lost(device_id device) {
  const auto place = find(device);
  ensure(place != ranks_.end() && !place->lost, "a member is lost once");
  place->lost = true;
}

void rank_history::mark_kept(device_id device) {
  const auto place = find(device);
  ensure(place != ranks_.end() && place->lost, "a member that is kept was to be replaced");
  place->lost = false;
}

void rank_history::remove(device_id device) {
  const auto place = find(device);
  ensure(place != ranks_.end(), "a device that is removed has a rank");
  ranks_.erase(place);
  ensure(find(device) == ranks_.end(), "a device has one rank");
}

void rank_history::remove_lost() {
  std::erase_if(ranks_, [](auto& x) { return x.lost; });
}

void rank_history::replace(device_id lost, const gpu_sim::DeviceMetadata& spare) {
  const auto place = find(lost);
  ensure(place != ranks_.end() && place->lost, "a spare takes the rank of a lost device");
  ensure(find(id_of(spare)) == ranks_.end(), "a spare has no rank yet");
  *place = {spare, false, false};
}

void rank_history::open(epoch_number epoch) {
  ensure(by_epoch_.empty() || by_epoch_.rbegin()->first < epoch, "no epoch opens twice");
  ensure(std::none_of(ranks_.begin(), ranks_.end(), [](auto& x) { return x.lost; }), "an epoch has no lost rank");
  by_epoch_[epoch] = ranks_;
  if (by_epoch_.size() > epochs_max)
    by_epoch_.erase(by_epoch_.begin());
}

} // namespace ringmaster
