#include "actors/training/trainer.hpp"

#include "messages/errc.hpp"
#include "runtime/coordination/comm_name.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>

namespace ringmaster::training {

void trainer_state::start(trainer_settings settings) {
  settings_ = std::move(settings);
  wanted_ = static_cast<uint32_t>(settings_.devices.size());
  sides_ = setting_of(settings_.job->shape);
  image_ = std::move(settings_.from);
  step_ = shown_ = image_.step;
  gatherings_.emplace(self, [this](device_id device, uint64_t step) { has_nothing(device, step); });
  if (settings_.record)
    record_.emplace(self, step_record_settings{.coordinator = settings_.coordinator,
                                               .limit = settings_.operation_limit,
                                               .note = settings_.watcher.note,
                                               .confirmed = [this] {
                                                 if (now_ == phase::stepping)
                                                   commit();
                                               }});
  self->set_down_handler([this](const caf::down_msg& x) { rank_down(x); });
  self->monitor(settings_.coordinator);
  for (auto device : settings_.devices)
    add(device);
  news_ = ticked_ = self->clock().now();
  self->delayed_send(self, look_every, atom::tick_v);
}

// -- a step --

uint32_t trainer_state::ready_count() const {
  return static_cast<uint32_t>(std::ranges::count(members_, true, &member::ready));
}

step_world trainer_state::world_of_those_left() const {
  return step_world_of(*settings_.job, ready_count(), too_small_);
}

void trainer_state::choose_world() {
  const auto found = world_of_those_left();
  if (!calls_) { // whoever has nothing of the model is the first to be of no use
    std::ranges::stable_sort(members_, {}, [](auto& x) { return std::tuple{!x.ready, x.made.empty(), x.place}; });
    std::ranges::sort(std::span{members_}.first(found.ranks), {}, &member::place);
  }
  world_ = found.ranks;
  ensure(world_ <= ready_count(), "a step is of ranks that are ready");
  if (world_ == 0)
    return;
  const auto before = std::exchange(sides_, found.sides);
  const auto idled = std::exchange(idle_, ready_count() - world_);
  if (before == sides_ && idled == idle_)
    return;
  const auto told = setting_of(settings_.job->shape);
  auto text = fmt::format("from step {} on {}", step_, counted(world_, "rank"));
  text += world_ == 1 ? " trains" : " train";
  if (auto sides = text_of(sides_); !sides.empty())
    text += fmt::format(", {}{}", sides, text_of(told) == sides ? "" : fmt::format(" in place of {}", text_of(told)));
  if (sides_.stands_in)
    text += fmt::format(", by {} in place of {}", strategy_for(*settings_.job, sides_).name,
                        settings_.job->strategy->name);
  else if (before.stands_in)
    text += fmt::format(", by {} again", settings_.job->strategy->name);
  if (idle_ > 0)
    text += fmt::format("; {} more {} nothing until others join", idle_, idle_ == 1 ? "does" : "do");
  settings_.watcher.note(text);
}

void trainer_state::begin_step() {
  now_ = phase::stepping;
  choose_world();
  if (world_ == 0)
    return await_devices();
  ensure(gives_up_.empty() && abandoning_ == 0, "a step begins when every rank has given up the last attempt");
  short_since_.reset();
  if (++attempts_ > settings_.attempts_max)
    return end_with_model(make_error(errc::gave_up, fmt::format("step {} has failed {} times, the last time because {}",
                                                                step_, settings_.attempts_max, latest_problem())));
  ++attempt_;
  lacks_room_ = false;
  if (!calls_) {
    group_call_settings its;
    its.coordinator = settings_.coordinator;
    for (uint32_t i = 0; i < world_; ++i)
      its.devices.push_back(members_[i].device);
    its.name = as_comm_name(fmt::format("training by {}", strategy_for(*settings_.job, sides_).name));
    its.as = settings_.job->as;
    its.deterministic = settings_.deterministic;
    its.limit = settings_.operation_limit;
    calls_ = std::make_shared<group_calls>(self, std::move(its));
    if (world_ == 1) // others communicate soon
      calls_->hold();
  }
  desk_ = {};
  open_.clear();
  rooms_.clear();
  wanted_parts_.clear();
  report_ = {};
  events_.clear();
  begun_ = std::chrono::steady_clock::now();
  news_ = self->clock().now();
  for (auto& each : members_)
    each.makes.clear();
  for (uint32_t i = 0; i < world_; ++i) {
    auto& its = members_[i];
    ensure(its.ready && its.handle, "a rank that takes part in a step is ready");
    its.losses.reset();
    its.heard = news_;
    self->send(its.handle, step_order{attempt_, step_, i, world_, sides_, is_profiled(), its.made.empty()});
  }
}

bool trainer_state::is_possible(uint32_t rank, bool what_it_says) {
  if (rank < world_ && what_it_says)
    return true;
  end_run(malformed(fmt::format("step {}: rank {} says what no rank of {} can: its process runs another program, or "
                                "another version of this one",
                                step_, rank, world_)));
  return false;
}

void trainer_state::heard_of(uint32_t rank) {
  ensure(rank < members_.size(), "a rank that was heard of is a member");
  members_[rank].heard = news_ = self->clock().now();
}

void trainer_state::alive(const rank_alive& x) {
  if (is_current(x.attempt) && is_possible(x.rank, true))
    heard_of(x.rank);
}

void trainer_state::failed(const rank_failed& x) {
  if (!is_current(x.attempt) || ending_) // for what another one has said, maybe
    return;
  const auto why = with_context(fmt::format("step {}", step_), x.why);
  if (code_of(why) != errc::out_of_memory || world_ == wanted_)
    return end_with_model(why);
  too_small_.push_back({world_, sides_});
  const bool others_may_come = settings_.starts_ranks || may_return_ > 0;
  if (!others_may_come && world_of_those_left().ranks == 0)
    return end_with_model(why);
  recover(x.why);
}

trainer_actor::behavior_type trainer(trainer_actor::stateful_pointer<trainer_state> self, trainer_settings settings) {
  auto& state = self->state;
  state.self = self;
  state.start(std::move(settings));
  return {[&state](const rank_ready& x) { state.ready(x); },
          [&state](std::vector<rank_arrival>& all) { state.arrived(all); },
          [&state](const room_found& x) { state.room_found(x); },
          [&state](const part_wanted& x) { state.part_wanted(x); },
          [&state](const rank_ended& x) { state.ended(x); },
          [&state](const rank_failed& x) { state.failed(x); },
          [&state](const rank_alive& x) { state.alive(x); },
          [&state](const rank_leaving& x) { state.leaving(x); },
          [&state](atom::expire) { state.stop_requested(); },
          [&state](atom::resume) { state.room_made(); },
          [&state](atom::tick) { state.tick(); },
          [&state](atom::resume, uint64_t attempt) { state.go_on(attempt); }};
}

} // namespace ringmaster::training
