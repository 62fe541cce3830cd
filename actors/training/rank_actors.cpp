#include "actors/training/rank_actors.hpp"

#include "actors/scheduling/awaited_end.hpp"
#include "actors/training/training_rank.hpp"
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster::training {

const rank_actor& rank_actors::at(device_id device) const {
  const auto found = all_.find(device);
  ensure(found != all_.end(), "the device has a rank");
  return found->second;
}

caf::error rank_actors::problem_of(const rank_ready& x) const {
  const auto& ours = settings_->shared_settings;
  const auto [a, b] = std::ranges::mismatch(x.settings, ours);
  if (x.problem || (a == x.settings.end() && b == ours.end()))
    return x.problem;
  return invalid(fmt::format("the process of {} trains with {}, rank 0's with {}: all need the same settings",
                             ringmaster::text_of(x.device), a == x.settings.end() ? "less" : *a,
                             b == ours.end() ? "less" : *b));
}

void rank_actors::start(device_id device, uint32_t place) {
  rank_settings its;
  its.job = settings_->job;
  its.coordinator = settings_->coordinator;
  its.trainer = self_;
  its.device = device;
  its.place = place;
  its.memory_bytes = settings_->memory_bytes;
  its.shared_settings = settings_->shared_settings;
  its.helps = settings_->detached;
  auto rank = settings_->detached ? self_->spawn<caf::detached>(training_rank, its) : self_->spawn(training_rank, its);
  awaited_end::of(caf::actor_cast<caf::strong_actor_ptr>(rank));
  add(device, std::move(rank));
}

void rank_actors::add(device_id device, rank_actor rank) {
  self_->monitor(rank);
  const bool is_new = all_.emplace(device, std::move(rank)).second;
  ensure(is_new, "a device has one rank");
}

std::optional<device_id> rank_actors::exited(const caf::down_msg& x) {
  const auto found = std::ranges::find_if(all_, [&](auto& each) { return each.second.address() == x.source; });
  if (found == all_.end())
    return std::nullopt;
  const auto device = found->first;
  all_.erase(found);
  return device;
}

void rank_actors::stop(device_id device, const std::string& why) {
  const auto rank = all_.extract(device);
  if (rank.empty())
    return; // its process has not reported it
  self_->demonitor(rank.mapped().address());
  self_->send_exit(rank.mapped(), // its process may have been paused, and tells its user
                   make_error(errc::suspected, fmt::format("the run goes on without this rank: {}", why)));
}

void rank_actors::release(device_id device) {
  if (const auto rank = all_.extract(device))
    release(rank.mapped(), [] {});
}

void rank_actors::release(const rank_actor& rank, std::function<void()> done) {
  self_->demonitor(rank.address());
  self_->request(rank, release_limit, run_over{})
    .then([done](uint64_t) { done(); }, [self = self_, done, rank](const caf::error&) { // it computes, or has exited
      self->send_exit(rank, caf::exit_reason::user_shutdown);
      done();
    });
}

void rank_actors::release_all(const std::function<void()>& done) {
  auto left = std::make_shared<size_t>(all_.size() + 1);
  auto one_gone = [left, done] {
    ensure(*left > 0, "every rank goes once");
    if (--*left == 0)
      done();
  };
  for (auto& [device, rank] : all_)
    release(rank, one_gone);
  one_gone();
}

} // namespace ringmaster::training
