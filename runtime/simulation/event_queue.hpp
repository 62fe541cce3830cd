#pragma once

#include "runtime/simulation/message_graph.hpp"

#include <algorithm>
#include <functional>

namespace ringmaster {

/// Something can happen in a simulation.
struct simulated_event {
  /// Of one moment, in this order: work that takes no time lets messages of the same moment start, and a port that
  /// becomes free offers who waits for it before anybody else takes it.
  enum class kind : uint8_t { work, port_free, message };

  static constexpr uint32_t order_max = (1u << 30) - 1;

  picoseconds time = 0;
  picoseconds possible_since = 0; ///< Of a message: both its steps have begun. The first is the first.
  uint32_t order : 30;            ///< Of the step within its round; those of one moment go in this order.
  uint32_t what : 2;              ///< A kind.
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

/// The earliest first.
class event_queue {
public:
  bool empty() const { return events_.empty(); }

  void push(const simulated_event& x) {
    events_.push_back(x);
    std::push_heap(events_.begin(), events_.end(), std::greater{});
  }

  simulated_event pop() {
    std::pop_heap(events_.begin(), events_.end(), std::greater{});
    auto first = events_.back();
    events_.pop_back();
    return first;
  }

private:
  std::vector<simulated_event> events_;
};

/// A port, a network card, or a rank's own arithmetic.
struct resource {
  picoseconds free_at = 0;
  picoseconds busy = 0;
  uint32_t last = activity::none; ///< Who had it.
  bool calls = false;             ///< An event will come when it is free.
  event_queue waiting{};          ///< Messages; their times are all 0.

  void occupy(picoseconds start, picoseconds duration, uint32_t by) {
    free_at = start + duration;
    busy += duration;
    last = by;
  }
};

} // namespace ringmaster
