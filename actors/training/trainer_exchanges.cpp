// How a TRAINER has ranks meet: what they come to goes to a communicator when all are there and have room.
#include "actors/training/trainer.hpp"
#include "actors/training/training_rank.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster::training {

void trainer_state::arrived(std::vector<rank_arrival>& all) {
  for (auto& each : all)
    arrived(each);
  if (now_ == phase::stepping && !is_stuck())
    call_gathered();
}

void trainer_state::call_gathered() {
  if (calls_)
    calls_->flush();
}

namespace {

/// Whether a rank of a world like this can come to such a communication.
bool goes_with(const rank_arrival& x, uint32_t world_size) {
  if (!is_collective(x.what))
    return (x.what == op::send || x.what == op::receive) && x.peer < world_size && x.peer != x.rank;
  const auto& its = x.among;
  return its.count > 0 && its.stride > 0 && its.last() < world_size && its.contains(x.rank)
         && (x.what != op::broadcast || its.contains(x.peer));
}

} // namespace

void trainer_state::arrived(rank_arrival& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, goes_with(x, world_)))
    return;
  heard_of(x.rank);
  arrival mine;
  mine.about = shown(x.what, x.aside, x.rank, x.peer, x.among, std::move(x.argument), x.asked);
  mine.number = x.number;
  mine.count = x.count;
  mine.input = x.input;
  mine.output = x.output;
  auto all = desk_.arrive(std::move(mine));
  if (!all)
    return refuse(all.error());
  if (*all)
    exchange(std::move(**all));
}

void trainer_state::exchange(exchange_desk::exchange all) {
  const auto id = ++exchanges_;
  size_t awaited = 0;
  for (auto& each : all)
    if (each.output == 0 && each.about.what != op::send) {
      ++awaited;
      rooms_[{each.about.rank, each.number}] = id;
      self->send(members_[each.about.rank].handle, room_wanted{attempt_, each.number, each.about.results[0]});
    }
  if (awaited == 0)
    run(std::move(all));
  else
    open_[id] = {std::move(all), awaited};
}

void trainer_state::room_found(const training::room_found& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, rooms_.count({x.rank, x.number}) != 0))
    return;
  heard_of(x.rank);
  auto id = rooms_.extract({x.rank, x.number}).mapped();
  auto& its = open_.at(id);
  for (auto& each : its.all)
    if (each.about.rank == x.rank)
      each.output = x.address;
  if (--its.rooms_awaited == 0)
    run(std::move(open_.extract(id).mapped().all));
  call_gathered();
}

namespace {

/// "4 ranks" of so many, or "ranks 1, 3, there 0 to 1": a communicator counts its own.
std::string text_of(const exchange_desk::exchange& x, uint32_t world_size) {
  if (x.size() == world_size)
    return counted(x.size(), "rank");
  std::vector<uint32_t> ranks;
  for (auto& each : x)
    ranks.push_back(each.about.rank);
  std::ranges::sort(ranks);
  return fmt::format("ranks {}, there 0 to {}", fmt::join(ranks, ", "), ranks.size() - 1);
}

} // namespace

void trainer_state::run(exchange_desk::exchange all) {
  auto shared = std::make_shared<exchange_desk::exchange>(std::move(all));
  auto done = [this, shared, attempt = attempt_](const caf::error& problem) {
    if (!is_current(attempt))
      return;
    news_ = self->clock().now();
    if (problem)
      return recover(with_context(
        fmt::format("{} over {}", name_of(shared->front().about.what), text_of(*shared, world_)), problem));
    const auto ended = seconds_now();
    for (auto& each : *shared)
      self->send(members_[each.about.rank].handle, exchange_ended{attempt, each.number, each.about.results[0], ended});
  };
  if (shared->front().count == 0 && shared->front().about.what != op::broadcast)
    done(caf::none); // of replicated parameters, where a layer has none
  else
    calls_->run(*shared, done);
}

} // namespace ringmaster::training
