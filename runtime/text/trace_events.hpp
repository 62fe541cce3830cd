#pragma once

#include "runtime/text/json_field.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringmaster {

/// A trace for Perfetto (ui.perfetto.dev) or chrome://tracing, in the JSON Trace Event Format. It is written event by
/// event, one on a line, so a million slices take no more memory than their text. Times are microseconds.
class trace_events {
public:
  /// A thread of a process: Perfetto draws a track for each.
  struct track {
    uint64_t pid = 0, tid = 0;
  };

  /// `decimals` of each time: 3 shows nanoseconds, 6 picoseconds.
  explicit trace_events(int decimals);

  void name_process(uint64_t pid, std::string_view name);
  /// Processes are drawn in the order of their index.
  void sort_process(uint64_t pid, uint64_t index);
  void name_thread(track where, std::string_view name);
  /// `category`: empty for none. `args`: an object, shown with the slice; null for none.
  void slice(track where, std::string_view category, std::string_view name, double start_us, double duration_us,
             const json_value& args);
  /// An event of the whole trace that has no duration.
  void instant(track where, std::string_view category, std::string_view name, double time_us);
  void counter(uint64_t pid, std::string_view name, double time_us, std::string_view unit, uint64_t value);
  /// An arrow from one slice to another, which have the same `id`. Each end must lie within a slice of its track.
  void flow_start(track where, std::string_view name, uint64_t id, double time_us);
  void flow_finish(track where, std::string_view name, uint64_t id, double time_us);

  size_t bytes() const noexcept { return text_.size(); }
  uint64_t count() const noexcept { return count_; }
  /// The finished document. The writer must not be used after that.
  std::string take();

private:
  void open(char phase, std::string_view category, std::string_view name);
  void put(track where);
  void put_time(std::string_view key, double us);
  void metadata(std::string_view what, track where, const json_value& args);
  void flow(char phase, track where, std::string_view name, uint64_t id, double time_us);

  int decimals_;
  std::string text_;
  uint64_t count_ = 0;
};

} // namespace ringmaster
