#include "runtime/simulation/critical_path.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// A point of the chain: the next part waited for `activity`, until `until`.
struct waited_for {
  uint32_t activity = activity::none;
  picoseconds until = 0;
};

/// What the work of a rank waited for: its own message's arrival, or other work of the rank.
waited_for before_work(const timeline& times, uint32_t index, picoseconds start) {
  const auto& x = times.graph.activities[index];
  return {x.is_local() ? x.cause : times.reduction_cause[index], start};
}

/// Whether work ended at `until`, not the message.
bool was_work(const timeline& times, uint32_t index, picoseconds until) {
  const auto& x = times.graph.activities[index];
  return x.is_local()
         || (!times.reduces_in_no_time() && times.receiver_action(x) == action::recv_reduce
             && until > times.arrival(x));
}

path_part work_part(const timeline& times, uint32_t index, picoseconds until) {
  const auto& x = times.graph.activities[index];
  auto rank = x.is_local() ? x.channel : times.graph.channels[x.channel].destination;
  auto kind = times.receiver_action(x) == action::copy ? path_part::kind::copy : path_part::kind::reduction;
  auto round = times.graph.steps[x.source_step].round;
  auto duration = times.work_time(x);
  return {kind, rank, rank, round, times.bytes_of(x), until - duration, duration, 0};
}

path_part message_part(const timeline& times, uint32_t index, picoseconds until) {
  const auto& x = times.graph.activities[index];
  const auto& ends = times.graph.channels[x.channel];
  auto duration = times.transfer_time(x);
  return {path_part::kind::message, ends.source, ends.destination, times.graph.steps[x.source_step].round,
          times.bytes_of(x),        x.time,      duration,         until - x.time - duration};
}

} // namespace

std::vector<path_part> critical_path_to(const timeline& times, uint32_t last, picoseconds end) {
  std::vector<path_part> path;
  for (waited_for at{last, end}; at.activity != activity::none;) {
    ensure(at.activity < times.graph.activities.size(), "the chain has activities of the simulation");
    const auto until = at.until;
    if (was_work(times, at.activity, at.until)) {
      path.push_back(work_part(times, at.activity, at.until));
      at = before_work(times, at.activity, path.back().start);
    } else {
      path.push_back(message_part(times, at.activity, at.until));
      at = {times.graph.activities[at.activity].cause, path.back().start};
    }
    ensure(path.back().start <= until && path.back().latency >= 0, "the chain goes back in time");
  }
  std::reverse(path.begin(), path.end());
  return path;
}

path_summary summary_of(const std::vector<path_part>& path) {
  path_summary sum;
  for (const auto& part : path) {
    auto is_message = part.what == path_part::kind::message;
    ++(is_message ? sum.messages : part.what == path_part::kind::copy ? sum.copies : sum.reductions);
    (is_message ? sum.transfer : sum.work) += part.transfer;
    sum.latency += part.latency;
  }
  return sum;
}

} // namespace ringmaster
