#include "runtime/simulation/simulation.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/simulation/event_queue.hpp"
#include "runtime/simulation/timeline.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// Processes events in the order of their times. The end of a message is known when it starts, so its steps are ended
/// immediately, and a message that does not wait needs one event only.
class simulator {
public:
  simulator(timeline times, const network& net, const simulation_observer& observer, const simulation_watch& watch)
    : times_(std::move(times)), graph_(times_.graph), observer_(observer), watch_(watch), ranks_(graph_.world_size()),
      resources_(port_count(net, graph_.world_size()) + graph_.world_size()) {}

  caf::expected<simulation> run() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].next = graph_.first_steps[rank];
      open_round(rank, 0, activity::none);
    }
    while (!events_.empty()) {
      auto next = events_.pop();
      ensure(next.time >= now_, "simulated time never runs backwards");
      now_ = next.time;
      switch (static_cast<simulated_event::kind>(next.what)) {
        case simulated_event::kind::work: work(next); break;
        case simulated_event::kind::port_free: call_next(next.subject, next.time); break;
        case simulated_event::kind::message: start_or_wait(next);
      }
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
      return events_.push({now, now, step_index - ranks_[rank].first, simulated_event::kind::work, index});
    }
    if (x.time == -1) { // the peer has not begun
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
    auto possible = std::max(now, earlier);
    events_.push({possible, possible, order, simulated_event::kind::message, index});
  }

  /// A time below -1 encodes the time at which one side began. The function is its own inverse.
  static picoseconds begun_by_one(picoseconds time) { return -2 - time; }

  /// A message waits for the port that becomes free last. Other messages may use its other ports until then.
  void start_or_wait(const simulated_event& now) {
    auto& x = graph_.activities[now.subject];
    const auto& path = times_.paths[x.channel];
    auto latest = path.ports[0];
    for (uint32_t i = 1; i < path.length; ++i)
      if (resources_[path.ports[i]].free_at > resources_[latest].free_at)
        latest = path.ports[i];
    if (resources_[latest].free_at > now.time) {
      resources_[latest].waiting.push({0, now.possible_since, now.order, simulated_event::kind::message, now.subject});
    } else {
      if (now.time > now.possible_since)
        x.cause = resources_[latest].last;
      x.time = now.time;
      transfer(now.subject);
    }
    for (uint32_t i = 0; i < path.length; ++i)
      arrange_call(path.ports[i], now.time);
  }

  /// Queues an event for the time at which the port is free, if a message waits for it.
  void arrange_call(uint32_t port, picoseconds now) {
    auto& x = resources_[port];
    if (x.waiting.empty() || x.calls)
      return;
    x.calls = true;
    events_.push({std::max(now, x.free_at), 0, 0, simulated_event::kind::port_free, port});
  }

  /// The first waiting message tries again. If it cannot start, it waits for another port, and the next one is called.
  void call_next(uint32_t port, picoseconds now) {
    auto& x = resources_[port];
    ensure(x.calls, "a port is called by the event that was queued for it");
    x.calls = false;
    if (x.free_at > now)
      return arrange_call(port, now);
    auto first = x.waiting.pop();
    first.time = now;
    events_.push(first);
  }

  void transfer(uint32_t index) {
    const auto& x = graph_.activities[index];
    const auto& path = times_.paths[x.channel];
    auto duration = times_.transfer_time(x);
    for (uint32_t i = 0; i < path.length; ++i)
      resources_[path.ports[i]].occupy(x.time, duration, index);
    auto arrival = x.time + duration + path.latency;
    const auto& ends = graph_.channels[x.channel];
    auto reduces = !times_.reduces_in_no_time() && times_.receiver_action(x) == action::recv_reduce;
    ++result_.messages;
    result_.bytes += times_.bytes_of(x);
    observe(x, times_.receiver_action(x), ends, x.time, duration, path.latency);
    if (reduces)
      events_.push({arrival, arrival, x.destination_step - ranks_[ends.destination].first, simulated_event::kind::work,
                    index});
    else
      end_step(ends.destination, x.destination_step, arrival, index);
    end_step(ends.source, x.source_step, arrival, index);
  }

  void work(const simulated_event& now) {
    auto& x = graph_.activities[now.subject];
    auto local = x.is_local();
    auto rank = local ? x.channel : graph_.channels[x.channel].destination;
    auto& arithmetic = resources_[resources_.size() - ranks_.size() + rank];
    auto start = now.time;
    auto cause = local ? x.cause : now.subject;
    if (arithmetic.free_at > start) {
      start = arithmetic.free_at;
      cause = arithmetic.last;
    }
    auto duration = times_.work_time(x);
    arithmetic.occupy(start, duration, now.subject);
    if (local) {
      x.time = start;
      x.cause = cause;
    } else {
      times_.reduced_at[now.subject] = start + duration;
      times_.reduction_cause[now.subject] = cause;
    }
    observe(x, local ? times_.receiver_action(x) : action::reduce, {rank, rank}, start, duration, 0);
    end_step(rank, x.destination_step, start + duration, now.subject);
  }

  void observe(const activity& x, action what, channel ends, picoseconds start, picoseconds duration,
               picoseconds latency) {
    if (observer_)
      observer_({what, ends.source, ends.destination, graph_.steps[x.source_step].round, times_.bytes_of(x), start,
                 start + duration, start + duration + latency});
  }

  void end_step(uint32_t rank, uint32_t step_index, picoseconds now, uint32_t by) {
    auto& state = ranks_[rank];
    ensure(state.open > 0 && step_index >= state.first && step_index < state.next,
           "a step that ends is of an open round");
    constexpr uint64_t between_looks = 1 << 16;
    if (++result_.steps % between_looks == 0 && watch_)
      watch_(result_.steps, graph_.steps.size());
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

  static simulation::resource_class class_of(const std::vector<picoseconds>& busy) {
    if (busy.empty())
      return {};
    auto [least, most] = std::minmax_element(busy.begin(), busy.end());
    return {static_cast<uint32_t>(busy.size()),
            static_cast<double>(*least) >= (1 - simulation::alike_share) * static_cast<double>(*most)};
  }

  void compare_links() {
    std::vector<picoseconds> busy(graph_.channels.size()), between, within;
    for (const auto& x : graph_.activities)
      if (!x.is_local())
        busy[x.channel] += times_.transfer_time(x) + times_.paths[x.channel].latency;
    for (size_t i = 0; i < busy.size(); ++i)
      (times_.paths[i].passes_network_cards() ? between : within).push_back(busy[i]);
    result_.links = class_of(busy);
    result_.links_between = class_of(between);
    result_.links_within = class_of(within);
  }

  void compare_arithmetic() {
    std::vector<picoseconds> busy;
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      if (auto time = resources_[resources_.size() - ranks_.size() + rank].busy; time > 0)
        busy.push_back(time);
    result_.arithmetic = class_of(busy);
  }

  void finish() {
    ensure(result_.steps <= graph_.steps.size(), "each step ends once");
    if (last_ != activity::none)
      result_.critical_path = critical_path_to(times_, last_, result_.time);
    auto ports = resources_.size() - ranks_.size();
    for (uint32_t port = 0; port < ports; ++port) {
      auto busy = static_cast<double>(resources_[port].busy);
      auto share = result_.time == 0 ? 0 : busy / static_cast<double>(result_.time);
      if (share > result_.busiest_share) {
        result_.busiest_share = share;
        result_.busiest_port = port_name(port, graph_.world_size());
      }
    }
    for (uint32_t port = 0; port < ports; ++port) {
      auto share = result_.time == 0 ? 0
                                     : static_cast<double>(resources_[port].busy) / static_cast<double>(result_.time);
      result_.ports_used += share > 0 ? 1 : 0;
      result_.ports_alike += share > 0 && share >= (1 - simulation::alike_share) * result_.busiest_share ? 1 : 0;
    }
    compare_links();
    compare_arithmetic();
    ensure(result_.busiest_share <= 1, "a port is not occupied for longer than the simulation takes");
    if (result_.steps != graph_.steps.size())
      result_.stuck = who_waits(times_, ranks_);
  }

  timeline times_;
  message_graph& graph_;
  const simulation_observer& observer_;
  const simulation_watch& watch_;
  std::vector<rank_progress> ranks_;
  std::vector<resource> resources_; ///< Ports, then each rank's arithmetic.
  event_queue events_;
  simulation result_;
  picoseconds now_ = 0;            ///< Of the latest event.
  uint32_t last_ = activity::none; ///< The activity that ended last.
};

} // namespace

caf::expected<simulation> simulate(uint32_t world_size, const schedule_source& source, const network& net,
                                   uint64_t element_bytes, const simulation_observer& observer,
                                   const simulation_watch& watch) {
  RETURN_ERROR(check_network(net, world_size));
  TRY(graph, link_schedules(world_size, source));
  constexpr double picoseconds_per_second = 1e12;
  timeline times{std::move(*graph),
                 {},
                 element_bytes,
                 picoseconds_per_second / net.reduction_rate,
                 picoseconds_per_second / net.copy_rate};
  times.paths.reserve(times.graph.channels.size());
  for (const auto& x : times.graph.channels)
    times.paths.push_back(path_between(net, world_size, x.source, x.destination));
  if (times.reduction_ps_per_byte > 0) {
    times.reduced_at.resize(times.graph.activities.size());
    times.reduction_cause.resize(times.graph.activities.size());
  }
  ensure(times.paths.size() == times.graph.channels.size(), "each channel has a path");
  return simulator{std::move(times), net, observer, watch}.run();
}

caf::expected<simulation> simulate(std::span<const schedule> schedules, const network& net, uint64_t element_bytes,
                                   const simulation_observer& observer) {
  auto source = [&](uint32_t rank) -> caf::expected<schedule> { return schedules[rank]; };
  return simulate(static_cast<uint32_t>(schedules.size()), source, net, element_bytes, observer);
}

} // namespace ringmaster
