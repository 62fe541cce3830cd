// What a TRAINER does when all ranks have ended a step: it is put on record, told, and the next one begins.
#include "actors/calls/answers.hpp"
#include "actors/training/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

void trainer_state::ended(const rank_ended& x) {
  const auto layers = settings_.job->layers.size();
  if (!is_current(x.attempt)
      || !is_possible(x.rank, std::ranges::all_of(x.made, [&](auto& part) { return part.layer < layers; })))
    return;
  news_ = self->clock().now();
  report_.bytes_peak = std::max(report_.bytes_peak, x.bytes_peak);
  report_.bytes_needed = std::max(report_.bytes_needed, x.bytes_needed);
  auto& its = members_[x.rank];
  its.losses = x.losses;
  its.strays_at = x.strays_at;
  its.makes = x.made;
  events_.insert(events_.end(), x.events.begin(), x.events.end());
  commit();
}

/// Why the step cannot count; empty: it can.
std::string trainer_state::refusal_of_step() const {
  const auto first = members_.begin(), last = first + world_;
  const auto bad = std::find_if(first, last, [](auto& x) { return !std::isfinite(x.losses->loss); });
  if (bad == last) {
    auto why = desk_.waiting();
    return why.empty() ? desk_.left_behind() : why;
  }
  const auto source = std::min_element(first, last, [](auto& x, auto& y) { return x.strays_at < y.strays_at; });
  constexpr auto advice = "a lower learning rate, or inputs without infinities, would help";
  if (source->strays_at == no_layer)
    return fmt::format("the loss of rank {} in step {} is no number, and all outputs of its layers are: {}",
                       bad - first, step_, advice);
  return fmt::format(
    "the loss of rank {} in step {} is no number: the first layer that gave none is {}, {}, on rank {}; "
    "{}",
    bad - first, step_, source->strays_at, settings_.job->layers[source->strays_at]->name(), source - first, advice);
}

bool trainer_state::all_have_ended() const {
  return std::all_of(members_.begin(), members_.begin() + world_, [](auto& x) { return x.losses.has_value(); });
}

void trainer_state::commit() {
  if (step_ == settings_.steps)
    return;
  if (!all_have_ended() || recording_ || ending_) // the step before comes first: on_record goes on
    return;
  if (auto why = refusal_of_step(); !why.empty())
    return end_run(make_error(errc::aborted, why));
  lacks_room_ = !settings_.watcher.has_room(step_, shows_model_of(step_ + 1));
  if (lacks_room_)
    return;
  loss_sums all; // in the order of ranks: the same bits each time
  for (uint32_t i = 0; i < world_; ++i)
    all.add(*members_[i].losses);
  for (auto& each : members_) {
    each.made = std::exchange(each.makes, {});
    each.losses.reset();
  }
  const auto samples = static_cast<double>(std::max<uint64_t>(all.samples, 1));
  report_.step = step_;
  report_.loss = all.loss / samples;
  report_.accuracy = static_cast<double>(all.right) / samples;
  report_.ranks = world_;
  report_.attempts = attempts_;
  report_.ended_at = std::chrono::steady_clock::now();
  report_.seconds = std::chrono::duration<double>(report_.ended_at - begun_).count();
  if (settings_.record)
    put_on_record();
  settings_.watcher.step_done(report_);
  if (is_profiled() && !events_.empty())
    tell_profile();
  ++step_;
  attempts_ = 0;
  if (step_ == settings_.steps)
    return finish();
  keep_model();
  if (joins_ || std::ranges::any_of(members_, &member::leaves))
    recover("");
  else
    begin_step();
}

void trainer_state::room_made() {
  if (!lacks_room_ || now_ != phase::stepping)
    return;
  news_ = self->clock().now(); // nothing else was waited for
  commit();
}

/// Behind so many steps.
bool trainer_state::shows_model_of(uint64_t step) const {
  return settings_.image_every != 0 && (step % settings_.image_every == 0 || step == settings_.steps);
}

void trainer_state::tell_profile() {
  const auto first = std::ranges::min(events_, {}, &event::start).start;
  for (auto& each : events_)
    each.start -= first;
  std::ranges::stable_sort(events_, {}, [](auto& x) { return x.start + x.duration; }); // they came rank by rank
  settings_.watcher.profiled(events_, report_.seconds);
}

void trainer_state::keep_model() {
  const bool shows = shows_model_of(step_);
  if (!shows && !(settings_.mirror && parts().some_are_held_once()))
    return;
  take_image([this, shows, step = step_](const caf::expected<model_image>& x) {
    if (x && shows)
      show(*x);
    else if (!x && image_.step < step) // nor has it come since
      settings_.watcher.note(fmt::format("the host has no model as of step {}, and keeps the one before: {}", step,
                                         render(x.error())));
  });
}

void trainer_state::show(const model_image& x) {
  if (x.step != 0 && std::exchange(shown_, x.step) == x.step)
    return; // by who asked for it for another reason
  settings_.watcher.image(x);
}

void trainer_state::put_on_record() {
  auto record = settings_.record(step_);
  for (uint32_t i = 0; i < world_; ++i)
    record.add_device_ids(members_[i].device.value);
  record.set_strategy(std::string{settings_.job->strategy->name});
  record.set_attempts(attempts_);
  record.set_loss(report_.loss);
  self->send(settings_.coordinator, std::move(record));
  proto::JournalFlushRequest written;
  written.set_unsynced(true);
  const auto number = ++recordings_;
  recording_ = {number, step_, self->clock().now() + settings_.operation_limit}; // tick() looks
  self->request(settings_.coordinator, caf::infinite, written)
    .then([this, number](const proto::JournalFlushResponse& x) { on_record(number, error_in(x)); },
          [this, number](const caf::error& problem) { on_record(number, problem); });
}

void trainer_state::on_record(uint64_t number, const caf::error& problem) {
  if (!recording_ || recording_->number != number)
    return; // too late
  const auto step = std::exchange(recording_, std::nullopt)->step;
  if (code_of(problem) == errc::refused) // there is no journal
    settings_.record = nullptr;
  else
    tell_journal(step, problem);
  if (now_ == phase::stepping)
    commit();
}

void trainer_state::tell_journal(uint64_t step, const caf::error& problem) {
  if (problem)
    missing_ = {journal_says_.empty() ? step : std::min(missing_.begin, step), std::max(missing_.end, step + 1)};
  else
    missing_ = {};
  if (auto why = problem ? render(problem) : std::string{}; why != std::exchange(journal_says_, why))
    settings_.watcher.note(why.empty()
                             ? "the journal has the steps again"
                             : fmt::format("the journal may lack step {}, and training goes on: {}", step, why));
}

void trainer_state::tell_missing() {
  if (journal_says_.empty())
    return;
  const auto end = std::max(missing_.end, recording_ ? recording_->step + 1 : 0);
  const auto which = missing_.begin + 1 == end ? fmt::format("step {}", missing_.begin)
                                               : fmt::format("steps {} to {}", missing_.begin, end - 1);
  settings_.watcher.note(fmt::format("the journal lacks {} so far: {}", which, journal_says_));
}

} // namespace ringmaster::training
