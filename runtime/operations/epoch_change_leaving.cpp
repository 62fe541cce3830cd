// Members that leave, as if they were lost at a quiet moment.
#include "runtime/operations/epoch_change.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace ringmaster {

caf::error epoch_change::ask_to_leave(const std::vector<device_id>& devices, const std::string& reason) {
  if (ending())
    return make_error(errc::refused, async_error());
  auto more = to_leave_;
  for (auto device : devices)
    if (is_there(device))
      more.try_emplace(device, reason);
  if (policy_ != proto::REPLACE && more.size() == ranks_.size())
    return make_error(errc::refused,
                      fmt::format("communicator {} has no other ranks: destroy it, or wait for its end", owner_.value));
  if (policy_ == proto::ABORT)
    return make_error(errc::refused,
                      fmt::format("communicator {} would end if a rank left it, as its policy is \"abort\"",
                                  owner_.value));
  to_leave_ = std::move(more);
  return {};
}

epoch_change::decisions epoch_change::ask_to_stay(const std::vector<device_id>& devices) {
  decisions out;
  for (auto device : devices)
    if (to_leave_.erase(device) != 0)
      out.emplace_back(members_left{{device}, epoch_, make_error(errc::refused, "it is not to leave any more")});
  return out;
}

bool epoch_change::can_leave() const {
  auto& queue = operations_.in_flight();
  return state_ == phase::active && !to_leave_.empty() && !data_moves_
         && std::all_of(queue.begin(), queue.end(), [](auto& op) { return op.attempts == 0; });
}

epoch_change::decisions epoch_change::let_leave() {
  ensure(can_leave(), "members leave when nothing is under way");
  decisions out;
  if (policy_ != proto::REPLACE && to_leave_.size() == ranks_.size()) { // the others were lost meanwhile
    const auto problem = fmt::format("communicator {} has no other ranks any more", owner_.value);
    keep_leavers(out, make_error(errc::refused, problem));
    quiesce(out, "nobody leaves: " + problem); // what has waited begins
    return out;
  }
  auto leavers = std::exchange(to_leave_, {});
  std::vector<device_id> gone;
  std::vector<std::string> reasons;
  for (auto& [device, reason] : leavers) // by the ranks that they have now
    reasons.push_back(fmt::format("rank {} ({}) leaves: {}", rank_of(device), name_of(device), reason));
  for (size_t i = 0; auto& [device, why] : leavers) {
    ensure(is_there(device), "a member leaves that is there");
    auto& reason = reasons[i++];
    auto place = ranks_.begin() + static_cast<std::ptrdiff_t>(rank_of(device));
    if (policy_ == proto::REPLACE) {
      place->lost = true;
      to_replace_.push_back(device);
      leaving_[device] = reason;
      continue;
    }
    note_loss(reason);
    ranks_.erase(place);
    operations_.drop(device);
    without_results_.erase(device);
    gone.push_back(device);
  }
  quiesce(out, fmt::format("{}", fmt::join(reasons, "; ")));
  if (!gone.empty())
    out.emplace_back(members_left{std::move(gone), epoch_, {}});
  check();
  return out;
}

void epoch_change::keep_leavers(decisions& out, const caf::error& problem) {
  ensure(static_cast<bool>(problem), "members stay for a reason");
  std::vector<device_id> kept;
  for (auto* leavers : {&leaving_, &to_leave_})
    for (auto& x : std::exchange(*leavers, {}))
      kept.push_back(x.first);
  if (!kept.empty())
    out.emplace_back(members_left{std::move(kept), epoch_, problem});
}

void epoch_change::stay(decisions& out, device_id device, const caf::error& problem) {
  ensure(leaving_.count(device) != 0 && rank_of(device) < ranks_.size(), "a member stays that was to leave");
  leaving_.erase(device);
  ranks_[rank_of(device)].lost = false;
  std::erase(to_replace_, device);
  quiesce(out, fmt::format("rank {} ({}) stays: {}", rank_of(device), name_of(device), render(problem)));
  out.emplace_back(members_left{{device}, epoch_, problem});
}

} // namespace ringmaster
