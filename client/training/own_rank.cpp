#include "client/training/own_rank.hpp"

#include "actors/calls/await_down.hpp"
#include "actors/scheduling/awaited_end.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <spdlog/spdlog.h>

namespace ringmaster::training {

own_rank::own_rank(caf::actor_system& system, process_group& group, rank_settings with)
  : system_(system), group_(group), settings_(std::move(with)), self_(system) {
  settings_.device = id_of(group.ranks().front().device());
  settings_.place = group.launched()->rank;
  settings_.helps = true;
  start();
}

void own_rank::start() {
  ensure(!over_ && !device_by_, "a rank starts with a device");
  handle_ = caf::actor_cast<caf::actor>(system_.spawn<caf::detached>(training_rank, settings_));
  awaited_end::of(caf::actor_cast<caf::strong_actor_ptr>(handle_));
  self_->monitor(handle_);
}

void own_rank::poll(std::chrono::milliseconds limit) {
  if (device_by_)
    search_device();
  if (const auto down = await_down(*self_, limit))
    ended(down->reason);
}

void own_rank::ended(const caf::error& reason) {
  ensure(!over_, "a rank is over once");
  problem_ = reason == caf::exit_reason::user_shutdown ? caf::error{} : reason;
  over_ = !problem_ || leaves_;
  if (!over_)
    device_by_ = awake_clock::now() + rejoin_limit;
}

void own_rank::search_device() {
  constexpr std::chrono::milliseconds search_interval{100};
  over_ = leaves_;
  if (over_ || awake_clock::now() < search_at_)
    return;
  search_at_ = awake_clock::now() + search_interval;
  ensure(device_by_.has_value(), "a device is searched after one was lost");
  const auto found = group_.device_in_place_of(settings_.device);
  over_ = !found && awake_clock::now() >= *device_by_;
  if (!found)
    return;
  spdlog::warn("{}; this process's rank joins again with {}", render(problem_), text_of(*found));
  device_by_.reset();
  problem_ = {};
  settings_.device = *found;
  start();
}

void own_rank::ask_to_leave() {
  self_->send(settings_.trainer, rank_leaving{settings_.device});
}

void own_rank::leave() {
  leaves_ = true;
  self_->send_exit(handle_, caf::exit_reason::user_shutdown);
}

} // namespace ringmaster::training
