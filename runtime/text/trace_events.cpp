#include "runtime/text/trace_events.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <iterator>
#include <utility>

namespace ringmaster {

trace_events::trace_events(int decimals) : decimals_(decimals), text_(R"({"displayTimeUnit":"ns","traceEvents":[)") {
  ensure(decimals >= 0 && decimals <= 6, "a trace's times have at most the 6 decimals of a picosecond");
}

/// The first keys of an event, up to its name.
void trace_events::open(char phase, std::string_view category, std::string_view name) {
  ensure(!text_.empty(), "no event is added to a trace that was taken");
  text_ += count_++ == 0 ? "\n" : ",\n";
  fmt::format_to(std::back_inserter(text_), R"({{"ph":"{}")", phase);
  if (!category.empty())
    text_ += R"(,"cat":)" + json_text(category);
  text_ += R"(,"name":)" + json_text(name);
}

void trace_events::put(track where) {
  fmt::format_to(std::back_inserter(text_), R"(,"pid":{},"tid":{})", where.pid, where.tid);
}

void trace_events::put_time(std::string_view key, double us) {
  ensure(std::isfinite(us) && us >= 0, "a trace's times are not before its start");
  fmt::format_to(std::back_inserter(text_), R"(,"{}":{:.{}f})", key, us, decimals_);
}

void trace_events::metadata(std::string_view what, track where, const json_value& args) {
  open('M', {}, what);
  put(where);
  text_ += R"(,"args":)" + json_text(args) + '}';
}

void trace_events::name_process(uint64_t pid, std::string_view name) {
  metadata("process_name", {pid, 0}, {{"name", name}});
}

void trace_events::sort_process(uint64_t pid, uint64_t index) {
  metadata("process_sort_index", {pid, 0}, {{"sort_index", index}});
}

void trace_events::name_thread(track where, std::string_view name) {
  metadata("thread_name", where, {{"name", name}});
}

void trace_events::slice(track where, std::string_view category, std::string_view name, double start_us,
                         double duration_us, const json_value& args) {
  open('X', category, name);
  put(where);
  put_time("ts", start_us);
  put_time("dur", duration_us);
  if (!args.is_null())
    text_ += R"(,"args":)" + json_text(args);
  text_ += '}';
}

void trace_events::instant(track where, std::string_view category, std::string_view name, double time_us) {
  open('i', category, name);
  text_ += R"(,"s":"g")";
  put(where);
  put_time("ts", time_us);
  text_ += '}';
}

void trace_events::counter(uint64_t pid, std::string_view name, double time_us, std::string_view unit, uint64_t value) {
  open('C', {}, name);
  fmt::format_to(std::back_inserter(text_), R"(,"pid":{})", pid);
  put_time("ts", time_us);
  fmt::format_to(std::back_inserter(text_), R"(,"args":{{{}:{}}}}})", json_text(unit), value);
}

void trace_events::flow(char phase, track where, std::string_view name, uint64_t id, double time_us) {
  open(phase, name, name);
  fmt::format_to(std::back_inserter(text_), R"(,"id":{})", id);
  put(where);
  put_time("ts", time_us);
}

void trace_events::flow_start(track where, std::string_view name, uint64_t id, double time_us) {
  flow('s', where, name, id, time_us);
  text_ += '}';
}

void trace_events::flow_finish(track where, std::string_view name, uint64_t id, double time_us) {
  flow('f', where, name, id, time_us);
  text_ += R"(,"bp":"e"})"; // bound to the slice around it, not to the next one
}

std::string trace_events::take() {
  ensure(!text_.empty(), "a trace is taken once");
  return std::exchange(text_, {}) + "\n]}\n";
}

} // namespace ringmaster
