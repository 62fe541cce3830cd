// Where a TRAINER finds the model as it is before a step: what its ranks have of it, and the host's image.
#include "actors/training/trainer.hpp"
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
  struct gathering {
    found_parts found;
    size_t left = 0;
    caf::error problem;
  };
  auto all = std::make_shared<gathering>();
  all->left = wanted.size() + 1;
  auto all_done = [all, then] {
    if (--all->left == 0)
      then(all->problem ? caf::expected<found_parts>{all->problem} : caf::expected<found_parts>{std::move(all->found)});
  };
  for (auto& each : wanted) {
    auto one_done = [all, all_done, what = each.what](const byte_block& x) {
      all->found[what] = x;
      all_done();
    };
    if (each.owner == on_host) {
      one_done(image_.parts.at(each.what));
      continue;
    }
    auto not_there = [this, all, one_done, step = step_, device = members_[each.owner].device,
                      layer = each.what.layer](std::string_view why) {
      all->problem = make_error(errc::device_lost, fmt::format("{} {}, and had a part of layer {}",
                                                               ringmaster::text_of(device), why, layer));
      has_nothing(device, step);
      one_done({});
    };
    self->request(members_[each.owner].handle, settings_.patience, part_request{step_, each.what})
      .then(
        [one_done, not_there](const byte_block& x) {
          if (x.size() != 0)
            one_done(x);
          else
            not_there("has not kept what it made");
        },
        [not_there](const caf::error&) { not_there("no longer answers"); });
  }
  all_done();
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
    if (step > step_)
      return then(make_error(errc::aborted, fmt::format("the run has gone back behind step {}", step)));
    image_ = {step, *x};
    then(image_);
  });
}

void trainer_state::part_wanted(const training::part_wanted& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, x.what.layer < settings_.job->layers.size()))
    return;
  news_ = self->clock().now();
  auto sources = parts().sources_of(x.what);
  if (!sources) // who had it is gone, and was of no use in this step: it goes back
    return recover(fmt::format("nobody has the whole of layer {} as of step {} any more", x.what.layer, step_));
  gather(*sources, [this, x](const caf::expected<found_parts>& found) {
    if (!is_current(x.attempt))
      return;
    if (found)
      give(x, *found);
    else
      recover(render(found.error()));
  });
}

void trainer_state::give(const training::part_wanted& x, const found_parts& from) {
  std::byte* to = nullptr;
  const auto bytes = bytes_of(*settings_.job, x.what);
  auto block = byte_block::uninitialized(bytes, to);
  std::fill_n(to, bytes, std::byte{});
  for (auto& [what, data] : from)
    if (what.kind == x.what.kind && what.layer == x.what.layer)
      copy_common(*settings_.job, what, data.bytes(), x.what, {to, bytes});
  self->send(members_[x.rank].handle, part_found{x.attempt, x.what, std::move(block)});
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
