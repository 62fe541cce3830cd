// Where a TRAINER finds the model as it is before a step: what its ranks have of it, and the host's image.
#include "actors/training/trainer.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

model_parts trainer_state::parts(bool of_those_that_leave) const {
  model_parts result{*settings_.job};
  for (uint32_t i = 0; i < members_.size(); ++i)
    if (of_those_that_leave || !members_[i].leaves)
      for (auto& part : members_[i].made)
        result.add(part, i);
  if (image_.step == step_)
    for (auto& [part, data] : image_.parts)
      result.add(part, on_host);
  return result;
}

void trainer_state::find_model() {
  if (step_ == 0)
    return;
  auto all = parts().whole();
  if (all)
    return;
  const auto before = std::exchange(step_, image_.parts.empty() ? 0 : image_.step);
  attempts_ = 0;
  for (auto& each : members_)
    each.made.clear();
  settings_.watcher.note(fmt::format("{}: back to {}; to be done again: {}", render(all.error()),
                                     step_ == 0 ? "the first weights" : fmt::format("step {}", step_),
                                     counted(before - step_, "step")));
}

void trainer_state::gather(const std::vector<model_parts::source>& wanted,
                           std::function<void(const caf::expected<found_parts>&)> then) {
  const auto number = ++gatherings_made_;
  auto& all = gatherings_[number];
  all = {.step = step_, .due = self->clock().now() + settings_.patience, .then = std::move(then)};
  for (auto& each : wanted)
    if (each.owner == on_host)
      all.found[each.what] = image_.parts.at(each.what);
    else
      all.awaited[each.what] = members_[each.owner].device;
  // No limit here: CAF's clock keeps a request's until it is over, of every part of every step.
  for (auto& each : wanted)
    if (each.owner != on_host)
      self->request(members_[each.owner].handle, caf::infinite, part_request{all.step, each.what})
        .then([this, number, what = each.what](const byte_block& x) { part_came(number, what, x); },
              [this, number, what = each.what](const caf::error&) { no_part_came(number, what, "no longer answers"); });
  if (all.awaited.empty())
    end_gathering(number);
}

void trainer_state::part_came(uint64_t number, const kept_part& what, const byte_block& x) {
  const auto its = gatherings_.find(number);
  if (its == gatherings_.end())
    return; // too late
  if (x.size() == 0)
    return no_part_came(number, what, "has not kept what it made");
  its->second.found[what] = x;
  its->second.awaited.erase(what);
  if (its->second.awaited.empty())
    end_gathering(number);
}

void trainer_state::no_part_came(uint64_t number, const kept_part& what, std::string_view why) {
  const auto its = gatherings_.find(number);
  if (its == gatherings_.end())
    return;
  auto& all = its->second;
  const auto device = all.awaited.extract(what).mapped();
  all.problem = make_error(errc::device_lost, fmt::format("{} {}, and had a part of layer {}",
                                                          ringmaster::text_of(device), why, what.layer));
  has_nothing(device, all.step);
  if (all.awaited.empty())
    end_gathering(number);
}

void trainer_state::end_gathering(uint64_t number) {
  auto all = std::move(gatherings_.extract(number).mapped());
  all.then(all.problem ? caf::expected<found_parts>{std::move(all.problem)}
                       : caf::expected<found_parts>{std::move(all.found)});
}

void trainer_state::expire_gatherings() {
  const auto now = self->clock().now();
  for (auto next = gatherings_.begin(); next != gatherings_.end();) {
    const auto number = next->first;
    const auto late = next->second.due <= now ? next->second.awaited : std::map<kept_part, device_id>{};
    for (auto& [what, device] : late) // the last one ends it
      no_part_came(number, what, "no longer answers");
    next = gatherings_.upper_bound(number);
  }
}

void trainer_state::has_nothing(device_id device, uint64_t step) {
  const auto found = std::ranges::find(members_, device, &member::device);
  if (found != members_.end() && step == step_)
    found->made.clear();
}

void trainer_state::take_image(std::function<void(const caf::expected<model_image>&)> then) {
  auto all = parts().whole();
  if (!all)
    return then(all.error());
  gather(*all, [this, then, step = step_](const caf::expected<found_parts>& x) {
    if (!x)
      return then(x.error());
    if (now_ == phase::over)
      return; // with another one
    if (step > step_)
      return then(make_error(errc::aborted, fmt::format("the run has gone back behind step {}", step)));
    const model_image found{step, *x};
    if (image_.parts.empty() || step >= image_.step) // of a later step, which had other sources, one may be there
      image_ = found;
    then(found);
  });
}

/// Behind so many steps.
bool trainer_state::shows_model_of(uint64_t step) const {
  return settings_.image_every != 0 && (step % settings_.image_every == 0 || step == settings_.steps);
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

} // namespace ringmaster::training
