#include "actors/training/model_snapshots.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <utility>

namespace ringmaster::training {

void part_gatherings::gather(uint64_t step, found_parts available, const std::vector<source>& from,
                             caf::actor_clock::time_point due, done_function then) {
  const auto number = ++made_;
  auto& its = all_[number];
  its = {.step = step, .due = due, .then = std::move(then), .found = std::move(available)};
  for (auto& each : from)
    ensure(its.awaited.emplace(each.what, each.device).second, "each part is asked of one rank");
  // No limit here: CAF's clock would keep one for each part of each step until the limit is over.
  for (auto& each : from)
    self_->request(each.rank, caf::infinite, part_request{step, each.what})
      .then([this, number, what = each.what](const byte_block& x) { arrived(number, what, x); },
            [this, number, what = each.what](const caf::error&) { failed(number, what, "no longer answers"); });
  if (from.empty())
    finish(number);
}

void part_gatherings::arrived(uint64_t number, const kept_part& what, const byte_block& x) {
  const auto its = all_.find(number);
  if (its == all_.end())
    return; // it has failed already
  if (x.size() == 0)
    return failed(number, what, "no longer has what it made");
  ensure(its->second.awaited.contains(what), "a part that arrives is awaited");
  its->second.found[what] = x;
  its->second.awaited.erase(what);
  if (its->second.awaited.empty())
    finish(number);
}

void part_gatherings::failed(uint64_t number, const kept_part& what, std::string_view why) {
  const auto its = all_.find(number);
  if (its == all_.end())
    return;
  auto& all = its->second;
  ensure(all.awaited.contains(what), "a part that fails is awaited");
  const auto device = all.awaited.extract(what).mapped();
  all.problem = make_error(errc::device_lost,
                           fmt::format("{} {}, and had a part of layer {}", text_of(device), why, what.layer));
  has_nothing_(device, all.step);
  if (all.awaited.empty())
    finish(number);
}

void part_gatherings::finish(uint64_t number) {
  ensure(all_.contains(number), "a collection finishes once");
  auto its = std::move(all_.extract(number).mapped());
  ensure(its.awaited.empty(), "a collection finishes when nothing is awaited");
  its.then(its.problem ? caf::expected<found_parts>{std::move(its.problem)}
                       : caf::expected<found_parts>{std::move(its.found)});
}

void part_gatherings::expire() {
  const auto now = self_->clock().now();
  for (auto next = all_.begin(); next != all_.end();) {
    const auto number = next->first;
    const auto late = next->second.due <= now ? next->second.awaited : std::map<kept_part, device_id>{};
    for (auto& [what, device] : late) // the last one finishes it
      failed(number, what, "no longer answers");
    next = all_.upper_bound(number);
  }
}

void part_gatherings::excuse(caf::timespan late) {
  for (auto& [number, each] : all_)
    each.due += late;
}

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

step_change::model_location model_snapshots::location() const {
  const auto step = change_.progress().step();
  const auto all = parts(step).whole(), of_others = parts(step, false).whole();
  step_change::model_location result;
  result.missing = all ? caf::error{} : all.error();
  result.missing_without_leavers = of_others ? caf::error{} : of_others.error();
  result.snapshot_step = latest_.parts.empty() ? 0 : latest_.step;
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
  ensure(step == change_.progress().step(), "a snapshot is taken of the model as it is");
  auto all = parts(step).whole();
  if (!all)
    return then(all.error());
  collect(step, *all, [this, then, step](const caf::expected<found_parts>& x) {
    if (!x)
      return then(x.error());
    if (change_.progress().is_over())
      return; // the run has ended with another one
    if (step > change_.progress().step())
      return then(make_error(errc::aborted, fmt::format("the run went back to a step before {}", step)));
    const model_snapshot found{step, *x};
    if (latest_.parts.empty() || step >= latest_.step) // a snapshot of a later step can arrive first
      latest_ = found;
    ensure(latest_.step <= change_.progress().step(), "a snapshot is of a step that was committed");
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
