// How a rank of a TRAINER's step gets parts of the model that it lacks, as one that has joined does: where another rank
// has the very part, by broadcast from its memory to all that want it; else the trainer puts it together of others, or
// of the host's image.
#include "actors/training/trainer.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace ringmaster::training {

void trainer_state::part_wanted(const training::part_wanted& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, x.what.layer < settings_.job->layers.size()))
    return;
  heard_of(x.rank);
  auto sources = parts().sources_of(x.what);
  if (!sources) // who had it is gone, and was of no use in this step: it goes back
    return recover(make_error(errc::device_lost, fmt::format("nobody has the whole of layer {} as of step {} any more",
                                                             x.what.layer, step_)));
  const auto owner = sources->front().owner;
  if (sources->front().what == x.what && owner < world_ && owner != x.rank)
    return hand_on(x, owner);
  gather(*sources, [this, x](const caf::expected<found_parts>& found) {
    if (!is_current(x.attempt))
      return;
    if (found)
      give(x, *found);
    else
      recover(found.error());
  });
}

void trainer_state::hand_on(const training::part_wanted& x, uint32_t owner) {
  auto& waiting = wanted_parts_[x.what];
  waiting.push_back({x.rank, x.address});
  if (waiting.size() > 1) // its owner has been asked, and has not answered yet
    return;
  // Without a limit of its own: the step's patience is.
  self->request(members_[owner].handle, caf::infinite, part_sought{x.attempt, x.what})
    .then(
      [this, x, owner](uint64_t address) {
        found_at(x, {owner, address});
      },
      [this, x, owner](const caf::error&) {
        found_at(x, {owner, 0});
      });
}

void trainer_state::found_at(const training::part_wanted& x, const group_calls::place& source) {
  if (!is_current(x.attempt))
    return;
  news_ = self->clock().now();
  const auto device = members_[source.rank].device;
  if (source.address == 0) {
    has_nothing(device, step_);
    return recover(make_error(errc::device_lost, fmt::format("{} no longer has the part of layer {} that it made",
                                                             ringmaster::text_of(device), x.what.layer)));
  }
  auto all = std::move(wanted_parts_.extract(x.what).mapped());
  all.insert(all.begin(), source);
  auto done = [this, x, all](const caf::error& problem) {
    if (!is_current(x.attempt))
      return;
    news_ = self->clock().now();
    if (problem)
      return recover(with_context(fmt::format("broadcast of a part of layer {}, to {} without it", x.what.layer,
                                              counted(all.size() - 1, "rank")),
                                  problem));
    for (auto& each : std::span{all}.subspan(1))
      self->send(members_[each.rank].handle, part_found{x.attempt, x.what, {}});
  };
  calls_->broadcast(all, bytes_of(*settings_.job, x.what) / bytes_of(settings_.job->as), std::move(done));
  calls_->flush();
}

void trainer_state::give(const training::part_wanted& x, const found_parts& from) {
  std::byte* to = nullptr;
  const auto bytes = bytes_of(*settings_.job, x.what);
  auto block = byte_block::uninitialized(bytes, to);
  assemble_part(*settings_.job, from, x.what, {to, bytes});
  self->send(members_[x.rank].handle, part_found{x.attempt, x.what, std::move(block)});
}

} // namespace ringmaster::training
