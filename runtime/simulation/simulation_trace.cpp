#include "runtime/simulation/simulation_trace.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/text/trace_events.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster {

namespace {

enum track : uint64_t { out = 1, in = 2, arithmetic = 3 };

constexpr int picosecond_decimals = 6;

double microseconds(picoseconds time) {
  return static_cast<double>(time) / 1e6;
}

class simulation_trace_writer {
public:
  std::string write(std::span<const simulated_activity> activities, uint32_t world_size) {
    for (uint32_t rank = 0; rank < world_size; ++rank)
      write_names(rank);
    for (const auto& x : activities) {
      ensure(x.source < world_size && x.destination < world_size, "a simulated activity is of ranks of its group");
      ensure(x.start <= x.ports_free && x.ports_free <= x.end, "a port is occupied until the activity ends at most");
      if (x.source == x.destination)
        write_slice(x, x.source, arithmetic, fmt::format("{} {}", x.what == action::copy ? "copy" : "reduce", x.round));
      else
        write_message(x);
    }
    return events_.take();
  }

private:
  static trace_events::track track_of(uint32_t rank, track which) { return {rank + 1, which}; }

  void write_names(uint32_t rank) {
    const auto pid = track_of(rank, out).pid;
    events_.name_process(pid, fmt::format("rank {}", rank));
    events_.sort_process(pid, rank);
    events_.name_thread(track_of(rank, out), "out");
    events_.name_thread(track_of(rank, in), "in");
    events_.name_thread(track_of(rank, arithmetic), "arithmetic");
  }

  void write_slice(const simulated_activity& x, uint32_t rank, track where, const std::string& name) {
    events_.slice(track_of(rank, where), {}, name, microseconds(x.start), microseconds(x.ports_free - x.start),
                  {{"round", x.round},
                   {"from", x.source},
                   {"to", x.destination},
                   {"bytes", x.bytes},
                   {"ended_us", microseconds(x.end)}});
  }

  void write_message(const simulated_activity& x) {
    write_slice(x, x.source, out, fmt::format("to {}", x.destination));
    write_slice(x, x.destination, in, fmt::format("{} {}", x.what == action::recv_reduce ? "add" : "from", x.source));
    ++messages_;
    events_.flow_start(track_of(x.source, out), "message", messages_, microseconds(x.start));
    events_.flow_finish(track_of(x.destination, in), "message", messages_, microseconds(x.start));
  }

  trace_events events_{picosecond_decimals};
  uint64_t messages_ = 0;
};

} // namespace

std::string trace_of(std::span<const simulated_activity> activities, uint32_t world_size) {
  return simulation_trace_writer{}.write(activities, world_size);
}

} // namespace ringmaster
