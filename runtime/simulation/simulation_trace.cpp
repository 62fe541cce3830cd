#include "runtime/simulation/simulation_trace.hpp"

#include <fmt/format.h>

#include <iterator>

namespace ringmaster {

namespace {

enum track : int { out = 1, in = 2, arithmetic = 3 };

/// Microseconds, exact to the picosecond.
std::string microseconds(picoseconds time) {
  return fmt::format("{}.{:06}", time / 1'000'000, time % 1'000'000);
}

class trace_writer {
public:
  std::string write(std::span<const simulated_activity> activities, uint32_t world_size) {
    for (uint32_t rank = 0; rank < world_size; ++rank)
      write_names(rank);
    for (const auto& x : activities)
      if (x.source == x.destination)
        slice(x, x.source, arithmetic, fmt::format("{} {}", x.what == action::copy ? "copy" : "reduce", x.round));
      else
        write_message(x);
    return out_ + "\n]}\n";
  }

private:
  template <class... Ts>
  void event(fmt::format_string<Ts...> format, Ts&&... xs) {
    out_ += out_.back() == '[' ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(out_), format, std::forward<Ts>(xs)...);
  }

  void write_names(uint32_t rank) {
    constexpr auto name = R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":"{}"}}}})";
    event(name, "process_name", rank + 1, 0, fmt::format("rank {}", rank));
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})", rank + 1, rank);
    event(name, "thread_name", rank + 1, static_cast<int>(out), "out");
    event(name, "thread_name", rank + 1, static_cast<int>(in), "in");
    event(name, "thread_name", rank + 1, static_cast<int>(arithmetic), "arithmetic");
  }

  void slice(const simulated_activity& x, uint32_t rank, track where, const std::string& name) {
    event(R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"round":{},"from":{},"to":{},)"
          R"("bytes":{},"ended_us":{}}}}})",
          name, rank + 1, static_cast<int>(where), microseconds(x.start), microseconds(x.ports_free - x.start),
          x.round, x.source, x.destination, x.bytes, microseconds(x.end));
  }

  void write_message(const simulated_activity& x) {
    slice(x, x.source, out, fmt::format("to {}", x.destination));
    slice(x, x.destination, in, fmt::format("{} {}", x.what == action::recv_reduce ? "add" : "from", x.source));
    constexpr auto arrow
      = R"({{"ph":"{}","bp":"e","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}}})";
    event(arrow, "s", ++messages_, x.source + 1, static_cast<int>(out), microseconds(x.start));
    event(arrow, "f", messages_, x.destination + 1, static_cast<int>(in), microseconds(x.start));
  }

  std::string out_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  uint64_t messages_ = 0;
};

} // namespace

std::string trace_of(std::span<const simulated_activity> activities, uint32_t world_size) {
  return trace_writer{}.write(activities, world_size);
}

} // namespace ringmaster
