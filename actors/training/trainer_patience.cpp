// Whom a TRAINER waits for, how long, and what it says meanwhile.
#include "actors/training/trainer.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace ringmaster::training {

void trainer_state::tick() {
  if (now_ == phase::over)
    return;
  self->delayed_send(self, look_every, atom::tick_v);
  look_for_devices();
  look_for_drains();
  const auto now = self->clock().now();
  excuse(now - std::exchange(ticked_, now) - look_every);
  room_made(); // if there is any
  gatherings_->expire();
  if (now_ == phase::over || (record_ && record_->expire()))
    return;
  tell_silence();
  if (now_ == phase::recovering)
    ask_again();
  if (auto why = now_ == phase::stepping && calls_ ? calls_->check_overdue() : caf::error{})
    return recover(why);
  if (now_ == phase::gathering && !settings_.starts_ranks)
    for (auto& each : members_)
      if (!each.handle)
        ask_whether_it_comes(each.device);
  if (now_ == phase::stepping && record_ && record_->is_awaited() && all_have_ended())
    news_ = now; // the journal is waited for, up to its own limit
  if (now - news_ < settings_.patience)
    return;
  if (now_ == phase::gathering)
    return give_up_gathering();
  if (now_ != phase::stepping)
    return;
  const auto waiting = desk_.waiting();
  const auto why = fmt::format("nothing has happened for {}, which training.patience allows{}",
                               duration_text(settings_.patience), waiting ? ": " + *waiting : "");
  if (stands_still_again())
    return end_with_model(
      make_error(errc::gave_up,
                 fmt::format("step {} has stood still {} times with the same ranks: {}", step_, standstills_max, why)));
  recover(make_error(errc::timed_out, why));
}

bool trainer_state::stands_still_again() {
  std::vector<device_id> ranks;
  for (uint32_t i = 0; i < world_; ++i)
    ranks.push_back(members_[i].device);
  standstills_ = ranks == still_ranks_ ? standstills_ + 1 : 1;
  still_ranks_ = std::move(ranks);
  return standstills_ == standstills_max;
}

void trainer_state::give_up_gathering() {
  for (auto& each : members_)
    if (!each.ready) {
      if (each.handle)
        leave_out(each, "it was not ready in time");
      else
        ++may_return_; // its process is late, or gone
      settings_.watcher.note(fmt::format("{} has not become ready within {}", ringmaster::text_of(each.device),
                                         duration_text(settings_.patience)));
    }
  std::erase_if(members_, [](auto& each) { return !each.ready; });
  gathered();
}

void trainer_state::excuse(caf::timespan late) {
  if (late < look_every)
    return;
  news_ += late;
  gatherings_->excuse(late);
  if (record_)
    record_->excuse(late);
  if (calls_)
    calls_->excuse(late);
}

std::optional<std::string> trainer_state::awaited() const {
  if (handing_over_)
    return "what the ranks that leave have of the model has not come";
  if (now_ == phase::recovering && !gives_up_.empty())
    return fmt::format("{} has not said that its rank has given the step up", ringmaster::text_of(*gives_up_.begin()));
  if (now_ != phase::stepping || step_ >= settings_.steps || lacks_room_ || (record_ && record_->is_awaited()))
    return std::nullopt;
  auto why = desk_.waiting();
  return why ? why : unended();
}

std::optional<std::string> trainer_state::unended() const {
  constexpr size_t told = 4;
  std::vector<const member*> all;
  for (auto& each : std::span{members_}.first(world_))
    if (!each.losses)
      all.push_back(&each);
  if (all.empty())
    return std::nullopt;
  std::ranges::sort(all, {}, [](auto* x) { return x->heard; }); // those first that have been silent the longest
  std::vector<std::string> parts;
  for (auto* each : std::span{all}.first(std::min(told, all.size()))) {
    const auto silent = std::chrono::floor<std::chrono::milliseconds>(self->clock().now() - each->heard);
    parts.push_back(fmt::format("rank {} ({}), heard of {} ago", each - members_.data(),
                                ringmaster::text_of(each->device), duration_text(silent)));
  }
  return fmt::format("{} {} not ended it: {}{}", counted(all.size(), "rank"), all.size() == 1 ? "has" : "have",
                     fmt::join(parts, ", "), all.size() > told ? ", ..." : "");
}

void trainer_state::tell_silence() {
  constexpr caf::timespan answers_within = std::chrono::seconds{2};
  const auto now = self->clock().now();
  const auto silent = now - news_;
  if (silent < quiet_max - answers_within)
    return;
  auto why = awaited();
  if (!why)
    return;
  ask_again();
  if (std::exchange(silent_since_, news_) != news_)
    next_warning_ = quiet_max;
  if (silent < next_warning_)
    return;
  next_warning_ = 2 * next_warning_ + (repeat_interval - quiet_max);
  if (asked_at_ && now - *asked_at_ >= answers_within)
    why = "the coordinator does not answer";
  settings_.watcher.note(fmt::format("step {} stands still, for {} now: {}; {} behind {}", step_,
                                     duration_text(std::chrono::floor<std::chrono::seconds>(silent)), *why,
                                     now_ == phase::recovering
                                       ? "whoever is late is left out where its device is lost, or"
                                       : "it is given up where a rank is lost, or",
                                     duration_text(settings_.patience)));
}

void trainer_state::ask_again() {
  const auto all = awaited_devices();
  if (asked_at_ || all.empty())
    return;
  asked_at_ = self->clock().now();
  asking_ = all.size();
  for (auto device : all)
    ask_whether_lost(device, [this, attempt = attempt_, device](const caf::error& lost) {
      if (--asking_ == 0)
        asked_at_.reset();
      if (lost && attempt == attempt_)
        found_lost(device, lost);
    });
}

std::vector<device_id> trainer_state::awaited_devices() const {
  std::vector<device_id> result;
  if (now_ == phase::recovering && !handing_over_)
    return {gives_up_.begin(), gives_up_.end()};
  for (auto& each : members_)
    result.push_back(each.device);
  return result;
}

void trainer_state::found_lost(device_id device, const caf::error& lost) {
  const auto found = std::ranges::find(members_, device, &member::device);
  if (found == members_.end())
    return;
  const bool in_step = is_in_step(*found);
  drop(device, lost);
  if (!in_step)
    return;
  --world_;
  recover(make_error(errc::device_lost, fmt::format("{} is lost", ringmaster::text_of(device))));
}

} // namespace ringmaster::training
