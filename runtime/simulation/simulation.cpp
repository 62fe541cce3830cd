#include "runtime/simulation/simulation.hpp"

#include "messages/errc.hpp"
#include "runtime/simulation/stuck.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

/// Something can start: a message, or, where `works`, what its receiver makes of it or a rank does by itself.
struct event {
  picoseconds time;
  uint32_t order; ///< Of the step within its round.
  uint32_t works : 1;
  uint32_t activity : 31;

  friend bool operator>(const event& a, const event& b) {
    if (a.time != b.time)
      return a.time > b.time;
    return a.order != b.order ? a.order > b.order : a.activity > b.activity;
  }
};

/// A port, a network card, or a rank's own arithmetic.
struct resource {
  picoseconds free_at = 0;
  picoseconds busy = 0;
  uint32_t last = activity::none; ///< Who had it.
};

/// The events are taken in the order of their times, and an activity's end follows from its start: so a rank's step has
/// its end as soon as it starts, and one event an activity is enough.
class simulator {
public:
  simulator(timeline times, const network& net, const simulation_observer& observer)
    : times_(std::move(times)), graph_(times_.graph), observer_(observer), ranks_(graph_.world_size()),
      resources_(port_count(net, graph_.world_size()) + graph_.world_size()) {}

  caf::expected<simulation> run() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].next = graph_.first_steps[rank];
      open_round(rank, 0, activity::none);
    }
    while (!events_.empty()) {
      std::pop_heap(events_.begin(), events_.end(), std::greater{});
      auto next = events_.back();
      events_.pop_back();
      next.works ? work(next) : transfer(next);
      if (result_.time >= simulated_time_max)
        return make_error(errc::out_of_range, "the simulated time is more than 53 days, which is as far as it goes");
    }
    finish();
    return std::move(result_);
  }

private:
  void open_round(uint32_t rank, picoseconds now, uint32_t cause) {
    auto& state = ranks_[rank];
    auto end = graph_.first_steps[rank + 1];
    state.first = state.next;
    if (state.first == end)
      return;
    auto round = graph_.steps[state.first].round;
    while (state.next != end && graph_.steps[state.next].round == round)
      ++state.next;
    state.open = state.next - state.first;
    for (auto i = state.first; i < state.next; ++i)
      if (!graph_.steps[i].then)
        begin(rank, i, now, cause);
  }

  void begin(uint32_t rank, uint32_t step_index, picoseconds now, uint32_t cause) {
    auto index = graph_.steps[step_index].activity;
    auto& x = graph_.activities[index];
    if (x.is_local()) {
      x.cause = cause;
      return push({now, step_index - ranks_[rank].first, true, index});
    }
    if (x.time == -1) { // the other side has not begun
      x.time = begun_by_one(now);
      x.cause = cause;
      return;
    }
    auto earlier = begun_by_one(x.time);
    if (now > earlier)
      x.cause = cause;
    if (times_.paths[x.channel].broken)
      return;
    auto order = x.source_step - ranks_[graph_.channels[x.channel].source].first;
    push({std::max(now, earlier), order, false, index});
  }

  /// A time below -1 is that at which one side began, in a form that its own inverse undoes.
  static picoseconds begun_by_one(picoseconds time) { return -2 - time; }

  void push(event x) {
    events_.push_back(x);
    std::push_heap(events_.begin(), events_.end(), std::greater{});
  }

  void transfer(const event& now) {
    auto& x = graph_.activities[now.activity];
    const auto& path = times_.paths[x.channel];
    x.time = now.time;
    for (uint32_t i = 0; i < path.length; ++i)
      wait_for(resources_[path.ports[i]], x.time, x.cause);
    auto duration = times_.transfer_time(x);
    for (uint32_t i = 0; i < path.length; ++i)
      occupy(resources_[path.ports[i]], x.time, duration, now.activity);
    auto arrival = x.time + duration + path.latency;
    const auto& ends = graph_.channels[x.channel];
    auto reduces = !times_.reduces_in_no_time() && times_.receiver_action(x) == action::recv_reduce;
    ++result_.messages;
    result_.bytes += times_.bytes_of(x);
    observe(x, times_.receiver_action(x), ends, x.time, duration, path.latency);
    auto receiver_order = x.destination_step - ranks_[ends.destination].first;
    auto source_step = x.source_step, destination_step = x.destination_step;
    end_step(ends.source, source_step, arrival, now.activity);
    if (reduces)
      push({arrival, receiver_order, true, now.activity});
    else
      end_step(ends.destination, destination_step, arrival, now.activity);
  }

  void work(const event& now) {
    auto& x = graph_.activities[now.activity];
    auto local = x.is_local();
    auto rank = local ? x.channel : graph_.channels[x.channel].destination;
    auto& arithmetic = resources_[resources_.size() - ranks_.size() + rank];
    auto start = now.time;
    auto cause = local ? x.cause : now.activity;
    wait_for(arithmetic, start, cause);
    auto duration = times_.work_time(x);
    occupy(arithmetic, start, duration, now.activity);
    if (local) {
      x.time = start;
      x.cause = cause;
    } else {
      times_.reduced_at[now.activity] = start + duration;
      times_.reduction_cause[now.activity] = cause;
    }
    observe(x, local ? times_.receiver_action(x) : action::reduce, {rank, rank}, start, duration, 0);
    end_step(rank, x.destination_step, start + duration, now.activity);
  }

  static void wait_for(const resource& needed, picoseconds& start, uint32_t& cause) {
    if (needed.free_at > start) {
      start = needed.free_at;
      cause = needed.last;
    }
  }

  static void occupy(resource& x, picoseconds start, picoseconds duration, uint32_t by) {
    x.free_at = start + duration;
    x.busy += duration;
    x.last = by;
  }

  void observe(const activity& x, action what, channel ends, picoseconds start, picoseconds duration,
               picoseconds latency) {
    if (observer_)
      observer_({what, ends.source, ends.destination, graph_.steps[x.source_step].round, times_.bytes_of(x), start,
                 start + duration, start + duration + latency});
  }

  void end_step(uint32_t rank, uint32_t step_index, picoseconds now, uint32_t by) {
    auto& state = ranks_[rank];
    ++result_.steps;
    if (now >= state.ended_at) {
      state.ended_at = now;
      state.ended_by = by;
    }
    if (now > result_.time || last_ == activity::none) {
      result_.time = now;
      last_ = by;
    }
    if (step_index + 1 < state.next && graph_.steps[step_index + 1].then)
      begin(rank, step_index + 1, now, by);
    if (--state.open == 0)
      open_round(rank, state.ended_at, state.ended_by);
  }

  void finish() {
    if (last_ != activity::none)
      result_.critical_path = critical_path_to(times_, last_, result_.time);
    auto ports = resources_.size() - ranks_.size();
    for (uint32_t port = 0; port < ports; ++port) {
      auto share = result_.time == 0 ? 0 : static_cast<double>(resources_[port].busy) / static_cast<double>(result_.time);
      if (share > result_.busiest_share) {
        result_.busiest_share = share;
        result_.busiest_port = port_name(port, graph_.world_size());
      }
    }
    if (result_.steps != graph_.steps.size())
      result_.stuck = who_waits(times_, ranks_);
  }

  timeline times_;
  message_graph& graph_;
  const simulation_observer& observer_;
  std::vector<rank_progress> ranks_;
  std::vector<resource> resources_; ///< Ports, then each rank's arithmetic.
  std::vector<event> events_;       ///< A heap, the earliest on top.
  simulation result_;
  uint32_t last_ = activity::none; ///< What ended last.
};

} // namespace

caf::expected<simulation> simulate(uint32_t world_size, const schedule_source& source, const network& net,
                                   uint64_t element_bytes, const simulation_observer& observer) {
  if (auto problem = check_network(net, world_size))
    return problem;
  auto graph = link_schedules(world_size, source);
  if (!graph)
    return std::move(graph.error());
  constexpr double picoseconds_per_second = 1e12;
  timeline times{std::move(*graph), {}, element_bytes, picoseconds_per_second / net.reduction_rate,
                 picoseconds_per_second / net.copy_rate};
  times.paths.reserve(times.graph.channels.size());
  for (const auto& x : times.graph.channels)
    times.paths.push_back(path_between(net, world_size, x.source, x.destination));
  if (times.reduction_ps_per_byte > 0) {
    times.reduced_at.resize(times.graph.activities.size());
    times.reduction_cause.resize(times.graph.activities.size());
  }
  return simulator{std::move(times), net, observer}.run();
}

caf::expected<simulation> simulate(std::span<const schedule> schedules, const network& net, uint64_t element_bytes,
                                   const simulation_observer& observer) {
  auto source = [&](uint32_t rank) -> caf::expected<schedule> { return schedules[rank]; };
  return simulate(static_cast<uint32_t>(schedules.size()), source, net, element_bytes, observer);
}

} // namespace ringmaster
