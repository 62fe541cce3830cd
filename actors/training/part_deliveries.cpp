#include "actors/training/part_deliveries.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <span>

namespace ringmaster::training {

void part_deliveries::start(std::shared_ptr<const running_step> step) {
  ensure(!step_ || step->attempt > step_->attempt, "attempts only rise");
  step_ = std::move(step);
  waiting_.clear();
}

void part_deliveries::deliver(const part_wanted& x) {
  ensure(step_ && x.attempt == step_->attempt, "parts are wanted in the attempt under way");
  ensure(x.rank < step_->world_size() && x.what.layer < job_->layers.size(), "a rank wants a part of the model");
  auto sources = snapshots_.parts(step_->step).sources_of(x.what);
  if (!sources) // its owner is lost, and did not run this step
    return events_.failed(make_error(errc::device_lost,
                                     fmt::format("no rank has the whole of layer {} as of step {} any "
                                                 "more",
                                                 x.what.layer, step_->step)));
  if (!sources->empty() && sources->front().what == x.what) {
    const auto owner = sources->front().owner;
    if (owner < step_->world_size() && owner != x.rank)
      return broadcast_from(owner, x);
  }
  snapshots_.collect(step_->step, *sources, [this, x](const caf::expected<model_snapshots::found_parts>& found) {
    if (!events_.is_current(x.attempt))
      return;
    if (found)
      send_assembled(x, *found);
    else
      events_.failed(found.error());
  });
}

void part_deliveries::broadcast_from(uint32_t owner, const part_wanted& x) {
  auto& waiting = waiting_[x.what];
  waiting.push_back({x.rank, x.address});
  if (waiting.size() > 1) // its owner has been asked, and has not answered yet
    return;
  // Without a limit of its own: the step's patience applies.
  self_->request(step_->ranks[owner], caf::infinite, part_sought{x.attempt, x.what})
    .then(
      [this, x, owner](uint64_t address) {
        found_at(x, {owner, address});
      },
      [this, x, owner](const caf::error&) {
        found_at(x, {owner, 0});
      });
}

void part_deliveries::found_at(const part_wanted& x, const group_calls::place& source) {
  if (!events_.is_current(x.attempt))
    return;
  ensure(waiting_.contains(x.what), "a rank was asked for a part that others want");
  events_.progress();
  if (source.address == 0) {
    const auto device = step_->devices[source.rank];
    lost_parts_(device, step_->step);
    return events_.failed(make_error(errc::device_lost,
                                     fmt::format("{} no longer has the part of layer {} that it made",
                                                 ringmaster::text_of(device), x.what.layer)));
  }
  auto all = std::move(waiting_.extract(x.what).mapped());
  all.insert(all.begin(), source);
  auto done = [this, x,
               all](const caf::error& problem) { // not the attempt, which keeps the communicators that keep this
    if (!events_.is_current(x.attempt))
      return;
    events_.progress();
    if (problem)
      return events_.failed(with_context(fmt::format("broadcast of a part of layer {}, to {} without it", x.what.layer,
                                                     counted(all.size() - 1, "rank")),
                                         problem));
    for (auto& each : std::span{all}.subspan(1))
      self_->send(step_->ranks[each.rank], part_found{x.attempt, x.what, {}});
  };
  step_->calls->broadcast(all, bytes_of(*job_, x.what) / bytes_of(job_->as), std::move(done));
  step_->calls->flush();
}

void part_deliveries::send_assembled(const part_wanted& x, const model_snapshots::found_parts& from) {
  std::byte* to = nullptr;
  const auto bytes = bytes_of(*job_, x.what);
  auto block = byte_block::uninitialized(bytes, to);
  assemble_part(*job_, from, x.what, {to, bytes});
  self_->send(step_->ranks[x.rank], part_found{x.attempt, x.what, std::move(block)});
}

} // namespace ringmaster::training
