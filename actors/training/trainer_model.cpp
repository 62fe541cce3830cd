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

void trainer_state::gather(const std::vector<model_parts::source>& wanted, part_gatherings::done_function then) {
  found_parts there;
  std::vector<part_gatherings::source> from;
  for (auto& each : wanted)
    if (each.owner == on_host)
      there[each.what] = image_.parts.at(each.what);
    else
      from.push_back({each.what, members_[each.owner].device, members_[each.owner].handle});
  gatherings_->gather(step_, std::move(there), from, self->clock().now() + settings_.patience, std::move(then));
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

bool trainer_state::has_room_for_mirror() {
  const auto now = self->clock().now();
  if (mirror_looked_at_ && now < *mirror_looked_at_ + look_every)
    return !lacks_mirror_;
  mirror_looked_at_ = now;
  // The copy of one step stays until that of the next is complete.
  const auto needed = model_bytes(*settings_.job) * (image_.parts.empty() || lacks_mirror_ ? 2 : 1);
  const auto there = settings_.free_memory();
  const bool lacked = std::exchange(lacks_mirror_, there < needed);
  if (lacked == lacks_mirror_)
    return !lacks_mirror_;
  settings_.watcher.note(lacks_mirror_ ? fmt::format(
                           "the second copy of the model is left out: it needs {} of memory, and {} are free here; "
                           "until there is room, the loss of a device that alone has a part of the model goes "
                           "back to the latest checkpoint or end of an epoch",
                           bytes_text(needed), bytes_text(there))
                                       : "there is room for the second copy of the model again");
  return !lacks_mirror_;
}

void trainer_state::keep_model() {
  const bool shows = shows_model_of(step_);
  if (!shows && !(settings_.mirror && parts().some_are_held_once() && has_room_for_mirror()))
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
