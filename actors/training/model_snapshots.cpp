#include "actors/training/model_snapshots.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <utility>

namespace ringmaster::training {

model_snapshots::model_snapshots(trainer_actor::pointer self, std::shared_ptr<const trainer_settings> settings,
                                 const step_change& change, model_snapshot first,
                                 std::function<rank_actor(device_id)> actor_of,
                                 std::function<void(device_id, uint64_t step)> lost_parts)
  : self_(self), settings_(std::move(settings)), change_(change), actor_of_(std::move(actor_of)),
    gatherings_(self, std::move(lost_parts)), latest_(std::move(first)), reported_(latest_.step) {}

model_parts model_snapshots::parts(uint64_t step, bool with_leavers) const {
  model_parts result{*settings_->job};
  const auto& all = change_.ranks().members();
  ensure(all.size() < on_host, "the number of a rank is not that of the host");
  for (uint32_t i = 0; i < all.size(); ++i)
    if (with_leavers || !all[i].leaves)
      for (auto& part : all[i].made)
        result.add(part, i);
  if (latest_.step == step)
    for (auto& [part, data] : latest_.parts)
      result.add(part, on_host);
  return result;
}

bool model_snapshots::is_due(uint64_t step) const {
  return settings_->image_every != 0 && (step % settings_->image_every == 0 || step == settings_->steps);
}

void model_snapshots::collect(uint64_t step, const std::vector<model_parts::source>& wanted,
                              part_gatherings::done_function then) {
  found_parts on_this_host;
  std::vector<part_gatherings::source> from;
  for (auto& each : wanted) {
    ensure(each.owner == on_host || each.owner < change_.ranks().members().size(), "parts are with a rank or the host");
    if (each.owner == on_host)
      on_this_host[each.what] = latest_.parts.at(each.what);
    else {
      const auto device = change_.ranks().members()[each.owner].device;
      from.push_back({each.what, device, actor_of_(device)});
    }
  }
  gatherings_.gather(step, std::move(on_this_host), from, self_->clock().now() + settings_->patience, std::move(then));
}

void model_snapshots::take(uint64_t step, taken_function then) {
  ensure(step == change_.step(), "a snapshot is taken of the model as it is");
  auto all = parts(step).whole();
  if (!all)
    return then(all.error());
  collect(step, *all, [this, then, step](const caf::expected<found_parts>& x) {
    if (!x)
      return then(x.error());
    if (change_.is_over())
      return; // the run has ended with another one
    if (step > change_.step())
      return then(make_error(errc::aborted, fmt::format("the run went back to a step before {}", step)));
    const model_snapshot found{step, *x};
    if (latest_.parts.empty() || step >= latest_.step) // a snapshot of a later step can arrive first
      latest_ = found;
    ensure(latest_.step <= change_.step(), "a snapshot is of a step that was committed");
    then(found);
  });
}

bool model_snapshots::has_room_for_mirror() {
  constexpr caf::timespan check_interval = std::chrono::seconds{1};
  const auto now = self_->clock().now();
  if (mirror_checked_at_ && now < *mirror_checked_at_ + check_interval)
    return !lacks_mirror_;
  mirror_checked_at_ = now;
  // The copy of one step stays until that of the next is complete.
  const auto needed = model_bytes(*settings_->job) * (latest_.parts.empty() || lacks_mirror_ ? 2 : 1);
  const auto free = settings_->free_memory();
  const bool lacked = std::exchange(lacks_mirror_, free < needed);
  if (lacked == lacks_mirror_)
    return !lacks_mirror_;
  settings_->watcher.note(lacks_mirror_
                            ? fmt::format("the second copy of the model is omitted: it needs {} of memory, and {} are "
                                          "free here; until there is room, the loss of a device that alone has a part "
                                          "of the model goes back to the latest checkpoint or end of an epoch",
                                          bytes_text(needed), bytes_text(free))
                            : "there is room for the second copy of the model again");
  return !lacks_mirror_;
}

void model_snapshots::keep(uint64_t step) {
  const bool due = is_due(step);
  if (!due && !(settings_->mirror && parts(step).some_are_held_once() && has_room_for_mirror()))
    return;
  take(step, [this, due, step](const caf::expected<model_snapshot>& x) {
    if (x && due)
      report(*x);
    else if (!x && latest_.step < step) // it has not arrived since, either
      settings_->watcher.note(fmt::format("the host has no model as of step {}, and keeps the one before: {}", step,
                                          render(x.error())));
  });
}

void model_snapshots::repeat(uint64_t step) {
  if (latest_.step != step || (is_due(step) && reported_ != step))
    keep(step);
}

void model_snapshots::report(const model_snapshot& x) {
  if (x.step != 0 && std::exchange(reported_, x.step) == x.step)
    return; // it was requested for another reason, too
  settings_->watcher.image(x);
}

} // namespace ringmaster::training
