// What a TRAINER does when all ranks have ended a step: it is put on record, told, and the next one begins.
#include "actors/training/trainer.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace ringmaster::training {

void trainer_state::ended(const rank_ended& x) {
  const auto layers = settings_.job->layers.size();
  if (!is_current(x.attempt)
      || !is_possible(x.rank, std::ranges::all_of(x.made, [&](auto& part) { return part.layer < layers; })))
    return;
  heard_of(x.rank);
  report_.bytes_peak = std::max(report_.bytes_peak, x.bytes_peak);
  report_.bytes_needed = std::max(report_.bytes_needed, x.bytes_needed);
  auto& its = members_[x.rank];
  its.losses = x.losses;
  its.strays_at = x.strays_at;
  its.makes = x.made;
  events_.insert(events_.end(), x.events.begin(), x.events.end());
  if (!is_stuck())
    commit();
}

void trainer_state::refuse(const caf::error& why) {
  end_run(with_context(fmt::format("step {}", step_), why));
}

bool trainer_state::is_stuck() {
  const auto why = desk_.stuck([this](uint32_t rank) { return members_[rank].losses.has_value(); });
  if (why)
    refuse(why);
  return static_cast<bool>(why);
}

caf::error trainer_state::check_model_of_step() {
  const auto ranks = std::span{members_}.first(world_);
  if (std::ranges::equal(ranks, whole_made_, {}, &member::makes))
    return caf::none; // as in the step before
  whole_made_.clear();
  model_parts all{*settings_.job};
  for (uint32_t i = 0; i < world_; ++i)
    for (auto& part : ranks[i].makes)
      all.add(part, i);
  if (auto part = all.missing())
    return invalid(fmt::format("no rank has finished the whole of {}: update it, and finish it",
                               ringmaster::training::text_of(*part)));
  for (auto& each : ranks)
    whole_made_.push_back(each.makes);
  return caf::none;
}

caf::error trainer_state::check_step() {
  const auto first = members_.begin(), last = first + world_;
  const auto bad = std::find_if(first, last, [](auto& x) { return !std::isfinite(x.losses->loss); });
  if (bad == last) {
    auto why = desk_.left_behind(); // nobody waits: that was stuck
    if (!why)
      why = check_model_of_step();
    return with_context(fmt::format("step {}", step_), why);
  }
  const auto source = std::min_element(first, last, [](auto& x, auto& y) { return x.strays_at < y.strays_at; });
  constexpr auto advice = "a lower learning rate, or inputs without infinities, would help";
  if (source->strays_at == no_layer)
    return make_error(errc::aborted,
                      fmt::format("the loss of rank {} in step {} is no number, and all outputs of its layers are: {}",
                                  bad - first, step_, advice));
  return make_error(
    errc::aborted,
    fmt::format("the loss of rank {} in step {} is no number: the first layer that gave none is {}, {}, on rank {}; "
                "{}",
                bad - first, step_, source->strays_at, settings_.job->layers[source->strays_at]->name(), source - first,
                advice));
}

bool trainer_state::all_have_ended() const {
  return std::all_of(members_.begin(), members_.begin() + world_, [](auto& x) { return x.losses.has_value(); });
}

void trainer_state::commit() {
  if (step_ == settings_.steps)
    return;
  if (!all_have_ended() || (record_ && record_->is_awaited()) || ending_) // the step before comes first
    return;
  if (auto why = check_step())
    return end_run(why);
  lacks_room_ = !settings_.watcher.has_room(step_, shows_model_of(step_ + 1));
  if (lacks_room_)
    return;
  ensure(now_ == phase::stepping && world_ > 0, "a step that counts was under way");
  ensure(std::ranges::equal(std::span{members_}.first(world_), whole_made_, {}, &member::makes),
         "the ranks of a step that counts have all of the model");
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
  if (record_ && record_->is_kept())
    record_->put(step_done());
  settings_.watcher.step_done(report_);
  if (is_profiled() && !events_.empty())
    tell_profile();
  ++step_;
  ensure(step_ <= settings_.steps, "no more steps count than the run has");
  attempts_ = 0;
  still_ranks_.clear();
  if (step_ == settings_.steps)
    return finish();
  keep_model();
  if (joins_ || std::ranges::any_of(members_, &member::leaves))
    recover(caf::none);
  else
    begin_step();
}

proto::TrainingStep trainer_state::step_done() const {
  auto result = settings_.record(step_);
  for (uint32_t i = 0; i < world_; ++i)
    result.add_device_ids(members_[i].device.value);
  result.set_strategy(std::string{strategy_for(*settings_.job, sides_).name});
  result.set_attempts(attempts_);
  result.set_loss(report_.loss);
  return result;
}

void trainer_state::room_made() {
  if (!lacks_room_ || now_ != phase::stepping)
    return;
  news_ = self->clock().now(); // nothing else was waited for
  commit();
}

void trainer_state::tell_profile() {
  const auto first = std::ranges::min(events_, {}, &event::start).start;
  for (auto& each : events_)
    each.start -= first;
  std::ranges::stable_sort(events_, {}, [](auto& x) { return x.start + x.duration; }); // they came rank by rank
  settings_.watcher.profiled(events_, report_.seconds);
}

} // namespace ringmaster::training
