#include "runtime/journal/trace.hpp"

#include "runtime/text/json_value.hpp"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/journal/unfinished_ranks.hpp"

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

class trace_writer {
public:
  trace_writer(std::span<const Record> shown, std::span<const Record> context);

  std::string write();

private:
  void learn_operation(const Record& record);
  void learn_track(const Record& record);
  void learn_unfinished(std::span<const Record> context);
  void write_names();
  void write_rank(const proto::RankReport& x, interval when);
  void write_unfinished(const unfinished_rank& x);
  operation_label label_of(operation_key operation) const;
  void write_command(const proto::CommandEnded& x, interval when);
  void write_instant(const Record& record);
  template <class... Ts>
  void event(fmt::format_string<Ts...> format, Ts&&... xs) {
    out_ += out_.back() == '[' ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(out_), format, std::forward<Ts>(xs)...);
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
  std::vector<unfinished_rank> unfinished_; // of what is shown
  std::map<uint64_t, std::set<uint64_t>> streams_; // of each device, without the default stream
  uint64_t base_ns_ = UINT64_MAX;
  std::string out_;
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

/// The stream, or 0 for the device's default one.
static uint64_t other_stream(uint64_t stream_id) {
  return number_on_device(stream_id) == 1 ? 0 : stream_id;
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
  out_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
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
  return out_ + "\n]}\n";
}

void trace_writer::write_names() {
  auto name = [&](std::string_view what, int process, int track, std::string_view text) {
    event(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process, track, json_text(text));
  };
  name("process_name", coordinator_pid, 0, "coordinator");
  name("thread_name", coordinator_pid, default_stream_tid, "events");
  for (auto& [device, streams] : streams_) {
    name("process_name", pid(device), 0, fmt::format("device {:#x}", device));
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})", pid(device),
          pid(device));
    name("thread_name", pid(device), default_stream_tid, "default stream");
    for (auto stream : streams)
      name("thread_name", pid(device), tid(device, stream), fmt::format("stream {}", number_on_device(stream)));
  }
}

operation_label trace_writer::label_of(operation_key operation) const {
  auto known = operations_.find(operation);
  return known == operations_.end() ? operation_label{} : known->second;
}

/// What the device never said: that it was at this operation when it hung, or died.
void trace_writer::write_unfinished(const unfinished_rank& x) {
  auto label = label_of(x.operation);
  auto how = to_string(x.how);
  event(R"({{"ph":"X","cat":"operation","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"comm":{},"epoch":{},)"
        R"("sequence":{},"rank":{},"phase":"{}","algorithm":{},"bytes":{},"error":{}}}}})",
        json_text(fmt::format("{} {}: {}", label.kind, x.operation.sequence.value, how)), pid(x.device.value),
        default_stream_tid, time(x.started_ns), microseconds(x.ended_ns - x.started_ns), x.operation.communicator.value,
        x.epoch, x.operation.sequence.value, x.rank, how, json_text(label.algorithm), label.bytes, json_text(x.cause));
}

void trace_writer::write_rank(const proto::RankReport& x, interval when) {
  auto label = label_of({communicator_id{x.comm_id()}, sequence_number{x.sequence()}});
  event(R"({{"ph":"X","cat":"operation","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"comm":{},"epoch":{},)"
        R"("sequence":{},"rank":{},"phase":"{}","algorithm":{},"bytes":{},"bytes_received":{},"error":{}}}}})",
        json_text(fmt::format("{} {}", label.kind, x.sequence())), pid(x.device_id()), tid(x.device_id(), other_stream(x.stream_id())),
        time(when.started_ns), microseconds(when.ended_ns - when.started_ns), x.comm_id(), x.epoch(),
        x.sequence(), x.rank(), lower(proto::RankReport::Phase_Name(x.phase())), json_text(label.algorithm), label.bytes,
        x.bytes_received(), json_text(x.error()));
}

void trace_writer::write_command(const proto::CommandEnded& x, interval when) {
  event(R"({{"ph":"X","cat":"command","name":{},"pid":{},"tid":{},"ts":{},"dur":{},)"
        R"("args":{{"bytes":{},"error":{}}}}})",
        json_text(x.kind()), pid(x.device_id()), tid(x.device_id(), other_stream(x.stream_id())), time(when.started_ns),
        microseconds(when.ended_ns - when.started_ns), x.bytes(), json_text(x.error()));
}

void trace_writer::write_instant(const Record& record) {
  record_text_options opts;
  auto line = text_of(record, opts);
  auto text = std::string_view{line}.substr(line.find("  ") + 2); // the slice has its own time
  event(R"({{"ph":"i","s":"g","cat":"{}","name":{},"pid":{},"tid":{},"ts":{}}})", kind_of(record), json_text(text),
        coordinator_pid, default_stream_tid, time(record.time_ns()));
}

} // namespace

std::string trace_of(std::span<const Record> shown, std::span<const Record> context) {
  return trace_writer{shown, context}.write();
}

} // namespace ringmaster
