#include "gateway/dialects/communicator_table.hpp"

#include "messages/errc.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace ringmaster::gateway {

namespace {

const char* text_of(communicator_table::end how) {
  switch (how) {
    case communicator_table::end::destroyed: return "was destroyed";
    case communicator_table::end::finalized: return "was finalized";
    case communicator_table::end::expired: break;
  }
  return "was not used for the time of idle-limit, and was destroyed";
}

} // namespace

course_communicator::course_communicator(const gpu_sim::CommInitResponse& made) : now_(id_of(made)) {
  for (auto& x : made.devices())
    ranks_.push_back({cluster_memory::of(x), cluster_memory::of(x)});
}

std::vector<std::pair<device_id, gpu_sim::DeviceMetadata>> course_communicator::update(
  uint64_t epoch, const google::protobuf::RepeatedPtrField<gpu_sim::DeviceMetadata>& devices) {
  std::vector<std::pair<device_id, gpu_sim::DeviceMetadata>> replaced;
  if (epoch <= epoch_ || devices.empty())
    return replaced;
  epoch_ = epoch;
  std::set<device_id> former;
  for (auto& x : ranks_)
    if (x.present)
      former.insert(x.present->device);
  // Ranks keep their order. A device that is not one of the former ones is a spare, which has a lost one's rank.
  auto next = devices.begin();
  for (auto& x : ranks_) {
    if (!x.present)
      continue;
    const bool stays = next != devices.end() && id_of(*next) == x.present->device;
    const bool is_spare = next != devices.end() && former.count(id_of(*next)) == 0;
    if (is_spare)
      replaced.emplace_back(x.present->device, *next);
    if (stays || is_spare)
      x.present = cluster_memory::of(*next++);
    else
      x.present.reset();
  }
  return replaced;
}

void course_communicator::moved_to(const gpu_sim::CommInitResponse& made) {
  now_ = id_of(made);
  epoch_ = 0;
  update(1, made.devices());
}

caf::expected<uint32_t> course_communicator::present_rank(uint32_t wanted) const {
  if (wanted >= ranks_.size())
    return invalid(fmt::format("the communicator has ranks 0 to {}, not {}", ranks_.size() - 1, wanted));
  if (!ranks_[wanted].present)
    return make_error(errc::device_lost,
                      fmt::format("rank {}, device 0x{:x}, is lost", wanted, ranks_[wanted].first.device));
  const auto before = std::count_if(ranks_.begin(), ranks_.begin() + wanted, [](auto& x) { return x.present; });
  return static_cast<uint32_t>(before);
}

std::optional<uint32_t> course_communicator::rank_of(device_id device) const {
  uint32_t number = 0;
  for (auto& x : ranks_) {
    if (x.present && (x.present->device == device || x.first.device == device))
      return number;
    number += x.present ? 1 : 0;
  }
  return std::nullopt;
}

std::vector<device_id> course_communicator::devices() const {
  std::vector<device_id> result;
  for (auto& x : ranks_)
    if (x.present)
      result.push_back(x.present->device);
  return result;
}

std::vector<course_communicator::member> course_communicator::members() const {
  std::vector<member> result;
  for (uint32_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i].present)
      result.push_back({i, ranks_[i].first, *ranks_[i].present});
  return result;
}

uint64_t communicator_table::add(const gpu_sim::CommInitResponse& made, course_communicator::time_point now) {
  const auto id = made.commid();
  auto [i, is_new] = alive_.emplace(id, course_communicator{made});
  ensure(is_new, "the cluster numbers communicators");
  i->second.last_used = now;
  return id;
}

caf::expected<course_communicator*> communicator_table::find(uint64_t id) {
  if (auto* found = find_or_null(id))
    return found;
  auto ended = ended_.find(id);
  return make_error(errc::unknown_communicator,
                    fmt::format("communicator {} {}", id,
                                ended == ended_.end() ? "was not made by CommInit at this address"
                                                      : text_of(ended->second)));
}

course_communicator* communicator_table::find_or_null(uint64_t id) {
  auto i = alive_.find(id);
  return i == alive_.end() ? nullptr : &i->second;
}

void communicator_table::remove(uint64_t id, end how) {
  if (alive_.erase(id) == 0)
    return;
  ended_[id] = how;
  if (ended_.size() > ended_max)
    ended_.erase(ended_.begin());
}

bool communicator_table::is_finalized(uint64_t id) const {
  auto i = ended_.find(id);
  return i != ended_.end() && i->second == end::finalized;
}

std::vector<uint64_t> communicator_table::idle_since(course_communicator::time_point before) const {
  std::vector<uint64_t> result;
  for (auto& [id, x] : alive_)
    if (x.last_used < before)
      result.push_back(id);
  return result;
}

course_communicator* communicator_table::latest_of(device_id device) {
  course_communicator* result = nullptr;
  for (auto& [id, x] : alive_)
    if (x.has(device) && (result == nullptr || x.last_used >= result->last_used))
      result = &x;
  return result;
}

} // namespace ringmaster::gateway
