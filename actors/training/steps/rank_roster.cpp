#include "actors/training/steps/rank_roster.hpp"

#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace ringmaster::training {

rank_roster::rank_roster(std::shared_ptr<const training_job> job, uint32_t wanted, bool starts_ranks)
  : job_(std::move(job)), wanted_(wanted), starts_ranks_(starts_ranks), sides_(setting_of(job_->shape)) {}

const rank_roster::member* rank_roster::find(device_id device) const {
  const auto found = std::ranges::find(members_, device, &member::device);
  return found == members_.end() ? nullptr : &*found;
}

rank_roster::member& rank_roster::get(device_id device) {
  const auto found = std::ranges::find(members_, device, &member::device);
  ensure(found != members_.end(), "the device has a rank");
  return *found;
}

bool rank_roster::is_in_world(device_id device) const {
  return std::ranges::find(world(), device, &member::device) != world().end();
}

uint32_t rank_roster::ready_count() const {
  return static_cast<uint32_t>(std::ranges::count(members_, true, &member::ready));
}

bool rank_roster::all_are_ready() const {
  return std::ranges::all_of(members_, &member::ready);
}

bool rank_roster::some_leave() const {
  return std::ranges::any_of(members_, &member::leaves);
}

step_world rank_roster::possible_world() const {
  return step_world_of(*job_, ready_count(), too_small_);
}

const rank_roster::member& rank_roster::add(device_id device) {
  uint32_t place = 0;
  while (std::ranges::count(members_, place, &member::place) > 0)
    ++place;
  ensure(find(device) == nullptr, "a device has one rank");
  ensure(!is_lost(device), "a device that was lost takes part no more");
  members_.push_back({.device = device, .place = place});
  return members_.back();
}

void rank_roster::add_at(device_id device, uint32_t place) {
  ensure(find(device) == nullptr, "a device has one rank");
  ensure(!is_lost(device), "a device that was lost takes part no more");
  std::erase_if(members_, [&](auto& x) { return !x.ready && x.place == place; });
  members_.push_back({.device = device, .place = place});
  may_return_ -= may_return_ > 0 ? 1 : 0;
  ensure(world_ <= members_.size(), "the ranks of the step are members");
}

void rank_roster::set_ready(device_id device) {
  auto& its = get(device);
  ensure(its.connected, "a rank that is ready has an actor");
  its.ready = true;
}

void rank_roster::erase(device_id device) {
  const auto found = std::ranges::find(members_, device, &member::device);
  ensure(found != members_.end(), "a rank is removed once");
  const auto in_world = found - members_.begin() < static_cast<ptrdiff_t>(world_);
  members_.erase(found);
  world_ -= in_world ? 1 : 0;
  ensure(world_ <= members_.size(), "the ranks of the step are members");
}

void rank_roster::lose(device_id device, bool may_return) {
  erase(device);
  lost_.insert(device);
  may_return_ += may_return ? 1 : 0;
}

void rank_roster::remove_unconnected(device_id device) {
  ensure(!get(device).connected, "a rank with an actor is lost, not forgotten");
  erase(device);
  ++may_return_;
}

std::vector<device_id> rank_roster::remove_leaving(bool for_good) {
  std::vector<device_id> result;
  for (auto& each : members_)
    if (each.leaves)
      result.push_back(each.device);
  for (auto device : result)
    erase(device);
  if (for_good)
    lost_.insert(result.begin(), result.end());
  ensure(!some_leave(), "all ranks that leave have left");
  return result;
}

std::string rank_roster::choose_world(uint64_t step, bool keep_order) {
  const auto found = possible_world();
  if (!keep_order) { // ranks without parts of the model are the first that are not needed
    std::ranges::stable_sort(members_, {}, [](auto& x) { return std::tuple{!x.ready, x.made.empty(), x.place}; });
    std::ranges::sort(std::span{members_}.first(found.ranks), {}, &member::place);
  }
  ensure(found.ranks <= ready_count(), "a step is of ranks that are ready");
  ensure(!keep_order || found == step_world{world_, sides_}, "open communicators are over the ranks of the step");
  world_ = found.ranks;
  ensure(std::ranges::all_of(world(), &member::ready), "the ranks of a step are ready");
  if (world_ == 0)
    return {};
  const auto before = std::exchange(sides_, found.sides);
  const auto idle_before = std::exchange(idle_, ready_count() - world_);
  return before == sides_ && idle_before == idle_ ? std::string{} : describe_change(step, before);
}

std::string rank_roster::describe_change(uint64_t step, const step_setting& before) const {
  const auto configured = text_of(setting_of(job_->shape));
  auto text = fmt::format("from step {} on {}", step, counted(world_, "rank"));
  text += world_ == 1 ? " trains" : " train";
  if (auto sides = text_of(sides_); !sides.empty())
    text += fmt::format(", {}{}", sides, configured == sides ? "" : fmt::format(" in place of {}", configured));
  if (sides_.stands_in)
    text += fmt::format(", by {} in place of {}", strategy_for(*job_, sides_).name, job_->strategy->name);
  else if (before.stands_in)
    text += fmt::format(", by {} again", job_->strategy->name);
  if (idle_ > 0)
    text += fmt::format("; {} more {} nothing until others join", idle_, idle_ == 1 ? "does" : "do");
  return text;
}

void rank_roster::commit(std::vector<std::vector<kept_part>> made) {
  ensure(made.size() == world_, "every rank of a step says what it has made");
  forget_all_parts();
  for (uint32_t i = 0; i < world_; ++i)
    members_[i].made = std::move(made[i]);
}

void rank_roster::forget_all_parts() {
  for (auto& each : members_)
    each.made.clear();
}

std::string rank_roster::state_text() const {
  std::vector<std::string> all;
  for (auto& x : members_)
    all.push_back(fmt::format("0x{:x} at {}{}{}{}", x.device, x.place, x.ready ? "" : " not ready",
                              x.leaves ? " leaves" : "", x.made.empty() ? "" : " has parts"));
  return fmt::format("{} of {} ranks run the step: [{}], {} idle, {} devices lost, {} processes may return", world_,
                     members_.size(), fmt::join(all, ", "), idle_, lost_.size(), may_return_);
}

} // namespace ringmaster::training
