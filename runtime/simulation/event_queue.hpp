#pragma once

#include "runtime/simulation/message_graph.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <functional>

namespace ringmaster {

/// An event of a simulation.
struct simulated_event {
  /// The order of events at one time: work without duration lets messages of the same time start, and a free port goes
  /// to a message that waits for it before any other takes it.
  enum class kind : uint8_t { work, port_free, message };

  static constexpr uint32_t order_max = (1u << 30) - 1;

  picoseconds time = 0;
  picoseconds possible_since = 0; ///< For a message: since when both its steps have begun. The earliest goes first.
  uint32_t order : 30;            ///< Of the step within its round: the order at equal times.
  uint32_t what : 2;              ///< A `kind`.
  uint32_t subject = 0;           ///< The activity, or the port.

  simulated_event(picoseconds at, picoseconds since, uint32_t step_order, kind k, uint32_t of)
    : time(at), possible_since(since), order(step_order & order_max), what(static_cast<uint32_t>(k) & 3u), subject(of) {
  }

  friend bool operator>(const simulated_event& a, const simulated_event& b) {
    if (a.time != b.time)
      return a.time > b.time;
    if (a.what != b.what)
      return a.what > b.what;
    if (a.possible_since != b.possible_since)
      return a.possible_since > b.possible_since;
    return a.order != b.order ? a.order > b.order : a.subject > b.subject;
  }
};

/// A priority queue with the earliest event first.
class event_queue {
public:
  bool empty() const { return events_.empty(); }

  void push(const simulated_event& x) {
    events_.push_back(x);
    std::push_heap(events_.begin(), events_.end(), std::greater{});
  }

  simulated_event pop() {
    ensure(!events_.empty(), "an event is taken from a queue that has one");
    std::pop_heap(events_.begin(), events_.end(), std::greater{});
    auto first = events_.back();
    events_.pop_back();
    return first;
  }

private:
  std::vector<simulated_event> events_;
};

/// A port, a network card, or a rank's arithmetic unit.
struct resource {
  picoseconds free_at = 0;
  picoseconds busy = 0;
  uint32_t last = activity::none; ///< The last activity that occupied it.
  bool calls = false;             ///< An event is queued for the time at which it is free.
  event_queue waiting{};          ///< Messages; their times are all 0.

  void occupy(picoseconds start, picoseconds duration, uint32_t by) {
    ensure(start >= free_at && duration >= 0, "a port carries one message at a time");
    free_at = start + duration;
    busy += duration;
    last = by;
  }
};

} // namespace ringmaster
