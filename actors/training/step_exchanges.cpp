#include "actors/training/step_exchanges.hpp"

#include "actors/training/training_rank.hpp"
#include "runtime/coordination/join_checks.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// "4 ranks" for all of them, or "ranks 1, 3, there 0 to 1": a communicator counts its own.
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

std::shared_ptr<group_calls> make_group_calls(trainer_actor::pointer self, const trainer_settings& settings,
                                              const std::vector<device_id>& devices, const step_setting& sides) {
  group_call_settings its;
  its.coordinator = settings.coordinator;
  its.devices = devices;
  its.name = as_comm_name(fmt::format("training by {}", strategy_for(*settings.job, sides).name));
  its.as = settings.job->as;
  its.deterministic = settings.deterministic;
  its.limit = settings.operation_limit;
  auto result = std::make_shared<group_calls>(self, std::move(its));
  if (devices.size() == 1) // others communicate soon
    result->hold();
  return result;
}

void step_exchanges::start(std::shared_ptr<const running_step> step) {
  ensure(step->world_size() > 0 && step->devices.size() == step->ranks.size(), "every rank of a step has a device");
  ensure(!step_ || step->attempt > step_->attempt, "attempts only rise");
  step_ = std::move(step);
  desk_ = {};
  open_.clear();
  rooms_.clear();
}

bool step_exchanges::is_possible(const rank_arrival& x, uint32_t world_size) {
  if (!is_collective(x.what))
    return (x.what == op::send || x.what == op::receive) && x.peer < world_size && x.peer != x.rank;
  const auto& its = x.among;
  return its.count > 1 && its.stride > 0 && its.last() < world_size && its.contains(x.rank)
         && (x.what != op::broadcast || its.contains(x.peer));
}

caf::error step_exchanges::arrive(rank_arrival& x) {
  ensure(step_ && x.attempt == step_->attempt, "ranks arrive in the attempt under way");
  ensure(x.rank < step_->world_size(), "a rank that arrives is one of the step's");
  arrival mine;
  mine.about = shown(x.what, x.aside, x.rank, x.peer, x.among, std::move(x.argument), x.asked);
  mine.number = x.number;
  mine.count = x.count;
  mine.input = x.input;
  mine.output = x.output;
  auto all = desk_.arrive(std::move(mine));
  if (!all)
    return all.error();
  if (*all)
    exchange(std::move(**all));
  return caf::none;
}

void step_exchanges::exchange(exchange_desk::exchange all) {
  ensure(all.size() >= 1, "ranks take part in an exchange");
  const auto id = ++exchanges_;
  size_t awaited = 0;
  for (auto& each : all)
    if (each.output == 0 && each.about.what != op::send) {
      ++awaited;
      rooms_[{each.about.rank, each.number}] = id;
      self_->send(step_->ranks[each.about.rank], room_wanted{step_->attempt, each.number, each.about.results[0]});
    }
  if (awaited == 0)
    run(std::move(all));
  else
    open_[id] = {std::move(all), awaited};
}

void step_exchanges::found(const room_found& x) {
  ensure(is_awaited(x), "memory that a rank has found was asked for");
  const auto id = rooms_.extract({x.rank, x.number}).mapped();
  ensure(open_.contains(id), "an exchange is open while memory for it is awaited");
  auto& its = open_.at(id);
  for (auto& each : its.all)
    if (each.about.rank == x.rank)
      each.output = x.address;
  ensure(its.rooms_awaited > 0, "an exchange that is open waits for memory");
  if (--its.rooms_awaited == 0)
    run(std::move(open_.extract(id).mapped().all));
  flush();
}

void step_exchanges::flush() {
  ensure(step_ && step_->calls, "operations start while a step is under way");
  step_->calls->flush();
}

void step_exchanges::run(exchange_desk::exchange all) {
  auto shared = std::make_shared<exchange_desk::exchange>(std::move(all));
  // The attempt by its number: the communicators keep this, and the attempt keeps the communicators.
  auto done = [this, shared, attempt = step_->attempt](const caf::error& problem) {
    if (!events_.is_current(attempt))
      return;
    ensure(step_ && step_->attempt == attempt, "the current attempt is the one under way");
    events_.progress();
    if (problem)
      return events_.failed(with_context(fmt::format("{} over {}", name_of(shared->front().about.what),
                                                     text_of(*shared, step_->world_size())),
                                         problem));
    const auto ended = seconds_now();
    for (auto& each : *shared)
      self_->send(step_->ranks[each.about.rank], exchange_ended{attempt, each.number, each.about.results[0], ended});
  };
  if (shared->front().count == 0 && shared->front().about.what != op::broadcast)
    done(caf::none); // of replicated parameters, where a layer has none
  else
    step_->calls->run(*shared, done);
}

} // namespace ringmaster::training
