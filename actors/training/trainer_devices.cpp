// Which devices a TRAINER has ranks on: those that it begins with, that are lost, and that come.
#include "actors/scheduling/awaited_end.hpp"
#include "actors/training/trainer.hpp"
#include "actors/training/training_rank.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// Whether the coordinator says of a device that it is gone.
bool is_loss(const caf::error& problem) {
  return code_of(problem) == errc::device_lost || code_of(problem) == errc::unknown_device;
}

/// Whether a rank's process was told something else than this one.
caf::error differing(const rank_ready& x, const std::vector<std::string>& ours) {
  const auto [a, b] = std::ranges::mismatch(x.told, ours);
  if (a == x.told.end() && b == ours.end())
    return caf::none;
  return make_error(errc::invalid_argument,
                    fmt::format("the process of {} trains with {}, rank 0's with {}: all need the same settings",
                                ringmaster::text_of(x.device), a == x.told.end() ? "less" : *a,
                                b == ours.end() ? "less" : *b));
}

} // namespace

caf::error trainer_state::without(const std::string& why) {
  return make_error(errc::suspected, fmt::format("the run goes on without this rank: {}", why));
}

void trainer_state::leave_out(const member& each, const std::string& why) {
  if (each.handle) {
    self->demonitor(each.handle.address());
    self->send_exit(each.handle, without(why));
  }
  lost_.insert(each.device);
}

void trainer_state::add(device_id device) {
  uint32_t place = 0; // the first that is free: of one that was lost, whose parts are needed there
  while (std::ranges::count(members_, place, &member::place) > 0)
    ++place;
  if (!settings_.starts_ranks) {
    members_.push_back({.device = device, .place = place});
    return;
  }
  rank_settings its;
  its.job = settings_.job;
  its.coordinator = settings_.coordinator;
  its.trainer = self;
  its.device = device;
  its.place = place;
  its.memory_bytes = settings_.memory_bytes;
  its.told = settings_.told;
  its.helps = settings_.detached;
  member added{.device = device, .place = place};
  added.handle = settings_.detached ? self->spawn<caf::detached>(training_rank, its) : self->spawn(training_rank, its);
  awaited_end::of(caf::actor_cast<caf::strong_actor_ptr>(added.handle));
  self->monitor(added.handle);
  members_.push_back(std::move(added));
}

void trainer_state::ready(const rank_ready& x) {
  const auto problem = x.problem ? x.problem : differing(x, settings_.told);
  auto found = std::ranges::find(members_, x.device, &member::device);
  const bool comes_anew = found == members_.end() && !settings_.starts_ranks && lost_.count(x.device) == 0;
  if (now_ == phase::over || !self->current_sender() || (found == members_.end() && !comes_anew))
    return;         // without a sender, its process has ended meanwhile: whoever waits for it asks the coordinator
  if (comes_anew) { // in place of a device that its process has lost, maybe before it could say so
    std::erase_if(members_, [&](auto& y) { return !y.ready && y.place == x.place; });
    found = members_.insert(members_.end(), {.device = x.device, .place = x.place});
    may_return_ -= may_return_ > 0 ? 1 : 0;
  }
  if (!found->handle) { // from another process, maybe
    found->handle = caf::actor_cast<rank_actor>(self->current_sender());
    self->monitor(found->handle);
  }
  if (problem)
    return refuse(found, problem);
  found->ready = true;
  news_ = self->clock().now();
  if (now_ == phase::gathering)
    return gathered();
  settings_.watcher.note(fmt::format("{} has joined, from the next step on", ringmaster::text_of(x.device)));
  joins_ = true;
}

void trainer_state::refuse(std::vector<member>::iterator which, const caf::error& problem) {
  const bool lost = is_loss(problem) || code_of(problem) == errc::timed_out;
  const bool taken = settings_.starts_ranks && code_of(problem) == errc::out_of_memory; // by another program, just now
  if (now_ == phase::gathering && !lost && !taken && lost_.empty())                     // so would any other be
    return end_run(problem);
  settings_.watcher.note(fmt::format("{} cannot join: {}{}", ringmaster::text_of(which->device),
                                     taken ? "another program has memory there: " : "", render(problem)));
  leave_out(*which, render(problem));
  members_.erase(which);
  ++may_return_;
  if (now_ == phase::gathering && taken) {
    lacks_devices_ = true;
    return look_for_devices();
  }
  if (now_ == phase::gathering)
    gathered();
}

void trainer_state::ask_whether_lost(device_id device, std::function<void(const caf::error&)> then) {
  gpu_sim::DeviceId id;
  id.set_value(device.value);
  self->request(settings_.coordinator, settings_.operation_limit, id)
    .then([then](const device_handle&) { then(caf::none); },
          [then](const caf::error& problem) { then(is_loss(problem) ? problem : caf::error{}); });
}

void trainer_state::ask_whether_it_comes(device_id device) {
  ask_whether_lost(device, [this, device](const caf::error& lost) {
    const auto found = std::ranges::find(members_, device, &member::device);
    if (!lost || now_ != phase::gathering || found == members_.end() || found->handle)
      return;
    drop(device, lost);
    gathered();
  });
}

void trainer_state::gathered() {
  if (std::ranges::all_of(members_, &member::ready))
    begin_step();
}

void trainer_state::rank_down(const caf::down_msg& x) {
  if (x.source == settings_.coordinator.address() && now_ != phase::over) {
    calls_.reset(); // nobody is there to end them, nor would any device go on for it
    return end_run(make_error(errc::device_lost,
                              fmt::format("the coordinator is gone, in step {}: {}", step_, render(x.reason))));
  }
  auto found = std::ranges::find_if(members_, [&](auto& y) { return y.handle && y.handle.address() == x.source; });
  if (found == members_.end() || now_ == phase::over)
    return;
  const bool takes_part = is_in_step(*found);
  const auto what = fmt::format("{} is lost: {}", ringmaster::text_of(found->device), render(x.reason));
  const auto device = found->device;
  lost_.insert(device);
  members_.erase(found);
  const bool process_ended = x.reason == caf::exit_reason::remote_link_unreachable;
  may_return_ += process_ended || x.reason == caf::exit_reason::user_shutdown ? 0 : 1;
  if (now_ == phase::gathering) {
    settings_.watcher.note(what);
    return gathered();
  }
  if (takes_part) {
    --world_;
    return recover(make_error(errc::device_lost, what));
  }
  settings_.watcher.note(what);
  given_up_by(device);
  hand_over_anew();
}

void trainer_state::await_devices() {
  constexpr caf::timespan look_again = std::chrono::milliseconds{100};
  const auto there = static_cast<uint32_t>(members_.size());
  auto why = there == 0 ? make_error(errc::device_lost, "no rank is left")
                        : settings_.job->strategy->check(settings_.job->shape, there);
  if (!why || step_world_of(*settings_.job, there).ranks > 0) // it could be, but for what was tried
    why = make_error(errc::gave_up, latest_problem());
  const auto what = fmt::format("step {} cannot be run by {}: {}", step_, counted(there, "rank"), render(why));
  const auto now = self->clock().now();
  const bool may_come = settings_.starts_ranks || may_return_ > 0;
  // A device that its node restarts comes soon after its operation's limit, however few others can come.
  const auto limit = may_return_ > 0 ? settings_.patience : std::min(settings_.patience, settings_.replacement_limit);
  if (may_come && !short_since_) {
    short_since_ = now;
    settings_.watcher.note(fmt::format("{}; devices in place of those that are lost are awaited for {}", what,
                                       duration_text(limit)));
  }
  if (may_come && now - *short_since_ < limit) {
    now_ = phase::recovering;
    self->delayed_send(self, look_again, atom::resume_v, attempt_);
    return;
  }
  end_with_model(make_error(errc::too_few_devices, what));
}

void trainer_state::look_for_devices() {
  if (!settings_.starts_ranks || members_.size() >= wanted_ || looking_)
    return;
  looking_ = true;
  proto::ClusterInfoRequest free;
  const auto most = wanted_ + static_cast<uint32_t>(lost_.size()); // some of them may be known
  free.set_free_max(most);
  self->request(settings_.coordinator, settings_.operation_limit, free)
    .then(
      [this, most](const proto::ClusterInfo& x) {
        looking_ = false;
        const auto before = members_.size();
        for (auto& each : x.devices()) {
          const device_id id{each.metadata().deviceid().value()};
          const bool known = std::ranges::find(members_, id, &member::device) != members_.end() || lost_.count(id) != 0;
          if (!known && members_.size() < wanted_ && now_ != phase::over)
            add(id);
        }
        lacks_devices_ = lacks_devices_ && now_ == phase::gathering && members_.size() < wanted_;
        if (!lacks_devices_)
          return;
        if (members_.size() > before || most < wanted_ + lost_.size()) // there may be more
          look_for_devices();
        else
          end_run(make_error(errc::too_few_devices,
                             fmt::format("{} of {} are free: others were taken meanwhile, or lost", members_.size(),
                                         counted(wanted_, "device"))));
      },
      [this](const caf::error&) { looking_ = false; });
}

} // namespace ringmaster::training
