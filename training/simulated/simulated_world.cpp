#include "training/simulated/simulated_world.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace ringmaster::training {

namespace {

constexpr size_t events_max = 10'000'000; ///< Some hundred bytes each.

} // namespace

simulated_world::simulated_world(const model& trained, uint32_t world_size, const cost_model& costs, bool with_events,
                                 uint64_t operations_max, const training_watch& watch)
  : trained_(trained), costs_(costs), with_events_(with_events), operations_max_(operations_max), watch_(watch),
    ranks_(world_size), finished_(trained.layers), ready_(world_size) {
  outcome_.ranks.resize(world_size);
}

void simulated_world::take_place(pending& x, double duration) {
  constexpr uint64_t between_looks = 1 << 14;
  if (++outcome_.operations % between_looks == 0 && watch_ && !watch_(outcome_.operations))
    fail(x.rank, invalid("it was interrupted"));
  if (!takes_time(x.what))
    return;
  auto& state = ranks_[x.rank];
  auto& its = outcome_.ranks[x.rank];
  auto& clock = clock_of(x);
  its.last_start = std::max(its.last_start, clock);
  (x.aside ? its.aside : is_communication(x.what) ? its.communication : its.compute) += duration;
  const auto held = state.held + costs_.working_memory(x);
  if (!x.aside && held > its.peak_memory) { // beside, what is held is the main stream's later
    its.peak_memory = held;
    its.peak_at = clock;
  }
  if (with_events_ && outcome_.events.size() == events_max)
    fail(x.rank, invalid(fmt::format(
                   "there are more than {} events, too many to keep: take fewer ranks or micro-batches", events_max)));
  if (with_events_)
    outcome_.events.push_back({x.what, x.aside, x.rank, x.peer, x.argument.layer, x.argument.samples.first(), clock,
                               duration, held});
  clock += duration;
}

void simulated_world::give_results(pending& x) {
  for (size_t i = 0; i < x.results.size() && x.results[i].kind != value_kind::none; ++i) {
    if (x.aside && x.what == op::all_gather) // it is there since it began
      break;
    x.memory[i] = x.results[i].on_host ? 0 : costs_.memory_of(x.results[i]);
    ranks_[x.rank].held += x.memory[i];
  }
  x.ended = true;
}

uint64_t simulated_world::copied(const pending& x) const {
  const bool reads = x.what == op::send || x.what == op::all_gather || (x.what == op::broadcast && x.peer == x.rank);
  return x.aside && reads ? costs_.memory_of(x.argument) : 0;
}

bool simulated_world::waits_elsewhere(const pending& x) {
  auto* other = ranks_[x.rank].waits;
  if (other == nullptr)
    return false;
  fail(x.rank, invalid(fmt::format("rank {} goes on to its {} while it waits for its {}", x.rank, name_of(x.what),
                                   name_of(other->what))));
  return true;
}

bool simulated_world::begin(pending& x) {
  if (error_) // whatever it is, it leads nowhere
    return false;
  if (outcome_.operations >= operations_max_) {
    fail(x.rank, invalid(fmt::format("rank {} would begin its {} behind {} operations of all ranks, the limit", x.rank,
                                     name_of(x.what), operations_max_)));
    return false;
  }
  if (waits_elsewhere(x))
    return false;
  latest_ = x.rank;
  auto& state = ranks_[x.rank];
  if (!x.aside) {
    if (go(x)) {
      give_results(x);
      return true;
    }
    state.waits = &x;
    return false;
  }
  x.note = state.now;
  state.held += copied(x);
  if (x.what == op::all_gather) { // its result is there from now on
    auto whole = x.argument;
    whole.part = {};
    whole.has = form::whole;
    x.memory[0] = costs_.memory_of(whole);
    state.held += x.memory[0];
  }
  state.beside.push_back(&x);
  if (state.beside.size() == 1)
    start_next(x.rank);
  return false;
}

void simulated_world::start_next(uint32_t rank) {
  auto& state = ranks_[rank];
  while (!state.beside.empty() && !error_) {
    auto& next = *state.beside.front();
    state.aside = std::max(state.aside, next.note);
    next.begun = true;
    if (!go(next))
      return;
    end_aside(next);
  }
}

void simulated_world::end_aside(pending& x) {
  auto& state = ranks_[x.rank];
  state.beside.pop_front();
  x.ended = true;
  x.note = state.aside;
  if (state.waits != &x)
    return;
  state.waits = nullptr;
  await(x);
  ready_.push(x.rank, x.waiter);
}

bool simulated_world::await(pending& x) {
  if (error_ || waits_elsewhere(x))
    return false;
  auto& state = ranks_[x.rank];
  if (!x.ended) {
    state.waits = &x;
    return false;
  }
  if (const auto late = x.note - state.now; late > 0) { // what of it is the operation's own is not hidden
    if (is_communication(x.what))
      outcome_.ranks[x.rank].communication += std::min(late, costs_.time_of(x, world_size()));
    state.now = x.note;
  }
  state.held -= copied(x);
  give_results(x);
  return true;
}

void simulated_world::end_later(pending& x) {
  if (x.aside) {
    end_aside(x);
    restarts_.push_back(x.rank);
    return;
  }
  ranks_[x.rank].waits = nullptr;
  give_results(x);
  ready_.push(x.rank, x.waiter);
}

bool simulated_world::go(pending& x) {
  if (is_collective(x.what))
    return meet(x);
  if (x.what == op::receive)
    return receive(x);
  if (x.what == op::send)
    send(x);
  else
    take_place(x);
  if (x.what == op::finish)
    note_finished(x);
  return true;
}

void simulated_world::note_finished(const pending& x) {
  auto& of = x.argument;
  auto& finished = finished_[of.layer];
  const auto part = uint64_t{of.tensor.index} * of.part.count + of.part.index;
  if (finished.empty() || finished.back().cut != of.has || finished.back().tensor_count != of.tensor.count
      || finished.back().count != of.part.count || part < finished.back().parts.begin
      || part > finished.back().parts.end)
    finished.push_back({of.has, of.tensor.count, of.part.count, {part, part}});
  auto& end = finished.back().parts.end;
  end = std::max(end, part + 1);
}

void simulated_world::close() {
  double busy = 0, communication = 0;
  for (uint32_t i = 0; i < world_size(); ++i) {
    auto& its = outcome_.ranks[i];
    its.end = std::max(ranks_[i].now, ranks_[i].aside);
    outcome_.time = std::max(outcome_.time, its.last_start);
    outcome_.end = std::max(outcome_.end, its.end);
    if (its.peak_memory > outcome_.ranks[outcome_.peak_rank].peak_memory)
      outcome_.peak_rank = i;
    busy += its.compute + its.communication;
    communication += its.communication;
    outcome_.memory_left += ranks_[i].held;
  }
  const auto whole = outcome_.end * world_size();
  const auto waited = whole > 0 ? 1 - busy / whole : 0;
  outcome_.bubble_fraction = waited > 1e-12 ? waited : 0; // sums of many durations are off by less
  outcome_.communication_fraction = whole > 0 ? communication / whole : 0;
}

caf::expected<training_outcome> simulated_world::run(const strategy_function& program) {
  std::vector<rank> ranks;
  for (uint32_t i = 0; i < world_size(); ++i)
    ranks.emplace_back(*this, i, world_size(), trained_);
  {
    std::vector<strategy> bodies;
    for (auto& each : ranks)
      bodies.push_back(program(each));
    for (auto i = world_size(); i-- > 0;)
      ready_.push(i, bodies[i].body());
    while ((!ready_.empty() || !restarts_.empty()) && !error_) {
      if (!restarts_.empty()) {
        const auto rank = restarts_.back();
        restarts_.pop_back();
        start_next(rank);
        continue;
      }
      try {
        ready_.pop().resume();
      } catch (const std::exception& problem) {
        fail(0, invalid(fmt::format("a strategy has thrown an exception, the latest operation being rank {}'s: {}",
                                    latest_, problem.what())));
      }
    }
    if (!error_)
      error_ = deadlock();
    if (!error_)
      error_ = left_behind();
    if (!error_)
      error_ = missing_result();
  }
  if (error_)
    return error_;
  close();
  return std::move(outcome_);
}

} // namespace ringmaster::training
