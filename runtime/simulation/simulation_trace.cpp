#include "runtime/simulation/simulation_trace.hpp"

#include "runtime/text/json/json_writer.hpp"

#include <fmt/format.h>

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
    json_.object().member("displayTimeUnit", "ns").list("traceEvents");
    for (uint32_t rank = 0; rank < world_size; ++rank)
      write_names(rank);
    for (const auto& x : activities)
      if (x.source == x.destination)
        slice(x, x.source, arithmetic, fmt::format("{} {}", x.what == action::copy ? "copy" : "reduce", x.round));
      else
        write_message(x);
    return json_.line().end().end().take() + "\n";
  }

private:
  /// Begins one, on a line of its own.
  json_writer& event(const char* phase) { return json_.line().object().member("ph", phase); }

  void write_name(const char* what, uint32_t rank, int track, std::string_view text) {
    event("M").member("name", what).member("pid", rank + 1).member("tid", track);
    json_.object("args").member("name", text).end().end();
  }

  void write_names(uint32_t rank) {
    write_name("process_name", rank, 0, fmt::format("rank {}", rank));
    event("M").member("name", "process_sort_index").member("pid", rank + 1).member("tid", 0);
    json_.object("args").member("sort_index", rank).end().end();
    write_name("thread_name", rank, out, "out");
    write_name("thread_name", rank, in, "in");
    write_name("thread_name", rank, arithmetic, "arithmetic");
  }

  void slice(const simulated_activity& x, uint32_t rank, track where, const std::string& name) {
    event("X").member("name", name).member("pid", rank + 1).member("tid", static_cast<int>(where));
    json_.key("ts").literal(microseconds(x.start)).key("dur").literal(microseconds(x.ports_free - x.start));
    json_.object("args").member("round", x.round).member("from", x.source).member("to", x.destination);
    json_.member("bytes", x.bytes).key("ended_us").literal(microseconds(x.end)).end().end();
  }

  void write_message(const simulated_activity& x) {
    slice(x, x.source, out, fmt::format("to {}", x.destination));
    slice(x, x.destination, in, fmt::format("{} {}", x.what == action::recv_reduce ? "add" : "from", x.source));
    ++messages_;
    arrow("s", x.source, out, x.start);
    arrow("f", x.destination, in, x.start);
  }

  void arrow(const char* end, uint32_t rank, track where, picoseconds time) {
    event(end).member("bp", "e").member("name", "message").member("cat", "message").member("id", messages_);
    json_.member("pid", rank + 1).member("tid", static_cast<int>(where)).key("ts").literal(microseconds(time)).end();
  }

  json_writer json_;
  uint64_t messages_ = 0;
};

} // namespace

std::string trace_of(std::span<const simulated_activity> activities, uint32_t world_size) {
  return trace_writer{}.write(activities, world_size);
}

} // namespace ringmaster
