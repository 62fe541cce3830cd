#include "runtime/journal/trace.hpp"

#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/journal/unfinished_ranks.hpp"
#include "runtime/text/json_writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace ringmaster {
namespace {

using proto::Record;

constexpr int coordinator_pid = 1;
constexpr int first_device_pid = 2;
constexpr int default_stream_tid = 1;

std::string lower(std::string text) {
  for (auto& c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Exact to the nanosecond.
std::string microseconds(uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

// When something ran. A start that nobody noted is the moment of the record.
struct interval {
  uint64_t started_ns = 0;
  uint64_t ended_ns = 0;
};

template <class Event>
interval interval_of(const Event& x, uint64_t time_ns) {
  auto started = x.started_ns() == 0 ? time_ns : x.started_ns();
  return {started, std::max(started, x.ended_ns())};
}

// What an operation's slices say of it.
struct operation_label {
  std::string kind = "operation";
  std::string algorithm;
  uint64_t bytes = 0;
};

/// The stream, or 0 for the device's default one.
static uint64_t other_stream(uint64_t stream_id) {
  return number_on_device(stream_id) == 1 ? 0 : stream_id;
}

class trace_writer {
public:
  trace_writer(std::span<const Record> shown, std::span<const Record> context);

  std::string write();

private:
  void learn_operation(const Record& record);
  void learn_track(const Record& record);
  void learn_unfinished(std::span<const Record> context);
  void write_names();
  /// `fate`: how it went with a rank that has not reported; else empty.
  void write_rank(const proto::RankReport& x, interval when, const std::string& fate = {});
  void write_unfinished(const unfinished_rank& x);
  void write_command(const proto::CommandEnded& x, interval when);
  void write_instant(const Record& record);
  /// Begins one, on a line of its own.
  json_writer& event(const char* phase) { return json_.line().object().member("ph", phase); }
  void write_place(uint64_t device, uint64_t stream) {
    json_.member("pid", pid(device)).member("tid", tid(device, other_stream(stream)));
  }
  void write_interval(interval when) {
    json_.key("ts").literal(time(when.started_ns)).key("dur").literal(microseconds(when.ended_ns - when.started_ns));
  }

  std::string time(uint64_t ns) const { return microseconds(ns - base_ns_); }
  int tid(uint64_t device, uint64_t stream) const {
    if (stream == 0)
      return default_stream_tid;
    auto& streams = streams_.at(device);
    return default_stream_tid + 1 + static_cast<int>(std::distance(streams.begin(), streams.find(stream)));
  }
  int pid(uint64_t device) const {
    return first_device_pid + static_cast<int>(std::distance(streams_.begin(), streams_.find(device)));
  }

  std::span<const Record> shown_;
  std::map<operation_key, operation_label> operations_;
  std::vector<unfinished_rank> unfinished_;        // of what is shown
  std::map<uint64_t, std::set<uint64_t>> streams_; // of each device, without the default stream
  uint64_t base_ns_ = UINT64_MAX;
  json_writer json_;
};

trace_writer::trace_writer(std::span<const Record> shown, std::span<const Record> context) : shown_(shown) {
  for (auto& record : context)
    learn_operation(record);
  for (auto& record : shown)
    learn_track(record);
  learn_unfinished(context);
}

/// Shown with what else is shown of the operation, and with the end of the device.
void trace_writer::learn_unfinished(std::span<const Record> context) {
  std::set<operation_key> operations;
  std::set<device_id> ended;
  for (auto& record : shown_) {
    if (auto operation = operation_of(record))
      operations.insert(*operation);
    if (record.has_device_died())
      ended.insert(device_id{record.device_died().device_id()});
    else if (record.has_device_left())
      ended.insert(device_id{record.device_left().device_id()});
  }
  unfinished_ = unfinished_ranks(context);
  std::erase_if(unfinished_, [&](auto& x) { return operations.count(x.operation) == 0 && ended.count(x.device) == 0; });
  for (auto& x : unfinished_) {
    streams_[x.device.value];
    base_ns_ = std::min(base_ns_, x.started_ns);
  }
}

void trace_writer::learn_operation(const Record& record) {
  auto take = [&](proto::CollectiveKind kind, const std::string& algorithm, uint64_t bytes) {
    operations_[*operation_of(record)] = {lower(proto::CollectiveKind_Name(kind)), algorithm, bytes};
  };
  if (record.has_operation_enqueued()) {
    auto& x = record.operation_enqueued();
    take(x.request().collective().kind(), x.request().collective().algorithm(), x.bytes());
  } else if (record.has_operation_ended()) {
    auto& x = record.operation_ended();
    take(x.kind(), x.algorithm(), x.bytes());
  }
}

void trace_writer::learn_track(const Record& record) {
  auto track = [&](const auto& x) {
    auto& streams = streams_[x.device_id()];
    if (other_stream(x.stream_id()) != 0)
      streams.insert(other_stream(x.stream_id()));
    base_ns_ = std::min(base_ns_, interval_of(x, record.time_ns()).started_ns);
  };
  base_ns_ = std::min(base_ns_, record.time_ns());
  if (record.has_rank_ended())
    track(record.rank_ended());
  else if (record.has_command_ended())
    track(record.command_ended());
}

std::string trace_writer::write() {
  json_.object().member("displayTimeUnit", "ns").list("traceEvents");
  write_names();
  for (auto& record : shown_) {
    if (record.has_rank_ended())
      write_rank(record.rank_ended(), interval_of(record.rank_ended(), record.time_ns()));
    else if (record.has_command_ended())
      write_command(record.command_ended(), interval_of(record.command_ended(), record.time_ns()));
    else if (auto kind = kind_of(record); kind != "operation" && kind != "checkpoint")
      write_instant(record);
  }
  for (auto& x : unfinished_)
    write_unfinished(x);
  return json_.line().end().end().take() + "\n";
}

void trace_writer::write_names() {
  auto name = [&](std::string_view what, int process, int track, std::string_view text) {
    event("M").member("name", what).member("pid", process).member("tid", track);
    json_.object("args").member("name", text).end().end();
  };
  name("process_name", coordinator_pid, 0, "coordinator");
  name("thread_name", coordinator_pid, default_stream_tid, "events");
  for (auto& [device, streams] : streams_) {
    name("process_name", pid(device), 0, fmt::format("device {:#x}", device));
    event("M").member("name", "process_sort_index").member("pid", pid(device)).member("tid", 0);
    json_.object("args").member("sort_index", pid(device)).end().end();
    name("thread_name", pid(device), default_stream_tid, "default stream");
    for (auto stream : streams)
      name("thread_name", pid(device), tid(device, stream), fmt::format("stream {}", number_on_device(stream)));
  }
}

void trace_writer::write_rank(const proto::RankReport& x, interval when, const std::string& fate) {
  auto known = operations_.find({communicator_id{x.comm_id()}, sequence_number{x.sequence()}});
  auto label = known == operations_.end() ? operation_label{} : known->second;
  auto name = fmt::format("{} {}{}{}", label.kind, x.sequence(), fate.empty() ? "" : ": ", fate);
  event("X").member("cat", "operation").member("name", name);
  write_place(x.device_id(), x.stream_id());
  write_interval(when);
  json_.object("args")
    .member("comm", x.comm_id())
    .member("epoch", x.epoch())
    .member("sequence", x.sequence())
    .member("rank", x.rank())
    .member("phase", fate.empty() ? lower(proto::RankReport::Phase_Name(x.phase())) : fate)
    .member("algorithm", label.algorithm)
    .member("bytes", label.bytes)
    .member("bytes_received", x.bytes_received())
    .member("error", x.error())
    .end()
    .end();
}

/// What the device never said: that it was at this operation when it hung, or died.
void trace_writer::write_unfinished(const unfinished_rank& x) {
  proto::RankReport part;
  part.set_comm_id(x.operation.communicator.value);
  part.set_epoch(x.epoch);
  part.set_sequence(x.operation.sequence.value);
  part.set_rank(x.rank);
  part.set_device_id(x.device.value);
  part.set_error(x.cause);
  write_rank(part, {x.started_ns, x.ended_ns}, to_string(x.how));
}

void trace_writer::write_command(const proto::CommandEnded& x, interval when) {
  event("X").member("cat", "command").member("name", x.kind());
  write_place(x.device_id(), x.stream_id());
  write_interval(when);
  json_.object("args").member("bytes", x.bytes()).member("error", x.error()).end().end();
}

void trace_writer::write_instant(const Record& record) {
  record_text_options opts;
  auto line = text_of(record, opts);
  auto text = std::string_view{line}.substr(line.find("  ") + 2); // the slice has its own time
  event("i").member("s", "g").member("cat", kind_of(record)).member("name", text).member("pid", coordinator_pid);
  json_.member("tid", default_stream_tid).key("ts").literal(time(record.time_ns())).end();
}

} // namespace

std::string trace_of(std::span<const Record> shown, std::span<const Record> context) {
  return trace_writer{shown, context}.write();
}

} // namespace ringmaster
