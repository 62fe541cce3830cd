#include "runtime/journal/traces/trace.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/record_filter.hpp"
#include "runtime/journal/record_text.hpp"
#include "runtime/journal/traces/trace_places.hpp"
#include "runtime/text/trace_events.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster {
namespace {

using proto::Record;

constexpr int nanosecond_decimals = 3;

double microseconds(uint64_t ns) {
  return static_cast<double>(ns) / 1000;
}

// When something ran. Without a recorded start it is the time of the record.
struct interval {
  uint64_t started_ns = 0;
  uint64_t ended_ns = 0;
};

template <class Event>
interval interval_of(const Event& x, uint64_t time_ns) {
  auto started = x.started_ns() == 0 ? time_ns : x.started_ns();
  return {started, std::max(started, x.ended_ns())};
}

// What the slices of an operation show.
struct operation_label {
  std::string kind = "operation";
  std::string algorithm;
  uint64_t bytes = 0;
};

// One attempt of an operation.
using attempt_key = std::pair<operation_key, epoch_number>;

attempt_key attempt_of(const proto::RankReport& x) {
  return {{communicator_id{x.comm_id()}, sequence_number{x.sequence()}}, epoch_number{x.epoch()}};
}

class journal_trace_writer {
public:
  journal_trace_writer(std::span<const Record> shown, std::span<const Record> context);

  journal_trace write();

private:
  void learn_operation(const Record& record);
  void learn_track(const Record& record);
  void learn_unfinished(std::span<const Record> context);
  /// Converted to the coordinator's clock.
  template <class Event>
  interval coordinator_time(const Event& x, uint64_t time_ns) const {
    auto by_node = interval_of(x, time_ns);
    const device_id device{x.device_id()};
    return {places_.time_of(device, by_node.started_ns), places_.time_of(device, by_node.ended_ns)};
  }
  /// When the coordinator started the rank's operation; none if that, or the device's node, is unknown.
  std::optional<uint64_t> start_of(const proto::RankReport& x) const;
  void write_names();
  void write_start(const proto::RankReport& x, uint64_t when_ns);
  void write_arrow(const proto::RankReport& x, interval when);
  /// `fate`: of a rank that has not reported; else empty.
  void write_rank(const proto::RankReport& x, interval when, const std::string& fate = {});
  void write_shared_memory(const proto::OperationEnded& x);
  void write_unfinished(const unfinished_rank& x);
  void write_command(const proto::CommandEnded& x, interval when);
  void write_instant(const Record& record);
  /// A slice on the track of a device's stream.
  void write_slice(const char* category, const std::string& name, device_id device, stream_id stream, interval when,
                   const json_value& args);
  trace_events::track track_of(device_id device, stream_id stream) const {
    return {places_.pid(device), places_.tid(device, stream)};
  }
  /// Microseconds since the trace's start.
  double time(uint64_t ns) const {
    ensure(ns >= base_ns_, "a trace starts with its earliest time");
    return microseconds(ns - base_ns_);
  }

  std::span<const Record> shown_;
  std::map<operation_key, operation_label> operations_;
  std::vector<unfinished_rank> unfinished_; // of the records shown
  trace_places places_;
  std::map<attempt_key, uint64_t> starts_;                    // when the coordinator started them
  std::set<attempt_key> drawn_;                               // those with a start slice
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> free_ns_; // by process and track: when the latest slice ended
  uint64_t arrows_ = 0;
  uint64_t slices_ = 0;
  uint64_t instants_ = 0;
  uint64_t base_ns_ = UINT64_MAX;
  trace_events events_{nanosecond_decimals};
};

journal_trace_writer::journal_trace_writer(std::span<const Record> shown, std::span<const Record> context)
  : shown_(shown) {
  for (auto& record : context) {
    places_.learn(record);
    learn_operation(record);
  }
  for (auto& record : shown)
    learn_track(record);
  learn_unfinished(context);
}

/// Unfinished ranks are shown if their operation or the loss of their device is.
void journal_trace_writer::learn_unfinished(std::span<const Record> context) {
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
    places_.use(x.device, {});
    base_ns_ = std::min(base_ns_, x.started_ns);
  }
}

void journal_trace_writer::learn_operation(const Record& record) {
  auto take = [&](proto::CollectiveKind kind, const std::string& algorithm, uint64_t bytes) {
    operations_[*operation_of(record)] = {lower_case(proto::CollectiveKind_Name(kind)), algorithm, bytes};
  };
  if (record.has_operation_enqueued()) {
    auto& x = record.operation_enqueued();
    take(x.request().collective().kind(), x.request().collective().algorithm(), x.bytes());
  } else if (record.has_operation_ended()) {
    auto& x = record.operation_ended();
    take(x.kind(), x.algorithm(), x.bytes());
  } else if (record.has_operation_started()) {
    starts_[{*operation_of(record), epoch_number{record.operation_started().epoch()}}] = record.time_ns();
  }
}

void journal_trace_writer::learn_track(const Record& record) {
  auto track = [&](const auto& x) {
    places_.use(device_id{x.device_id()}, stream_id{x.stream_id()});
    base_ns_ = std::min(base_ns_, coordinator_time(x, record.time_ns()).started_ns);
  };
  base_ns_ = std::min(base_ns_, record.time_ns());
  if (record.has_rank_ended()) {
    track(record.rank_ended());
    if (auto start = start_of(record.rank_ended()))
      base_ns_ = std::min(base_ns_, *start);
  }
  if (record.has_command_ended())
    track(record.command_ended());
  if (record.has_operation_ended() && !record.operation_ended().device_ids().empty()) {
    for (auto device : record.operation_ended().device_ids())
      places_.use(device_id{device}, {});
    base_ns_ = std::min(base_ns_, interval_of(record.operation_ended(), record.time_ns()).started_ns);
  }
}

journal_trace journal_trace_writer::write() {
  write_names();
  for (auto& record : shown_) {
    if (record.has_rank_ended())
      write_rank(record.rank_ended(), coordinator_time(record.rank_ended(), record.time_ns()));
    else if (record.has_command_ended())
      write_command(record.command_ended(), coordinator_time(record.command_ended(), record.time_ns()));
    else if (record.has_operation_ended())
      write_shared_memory(record.operation_ended());
    else if (auto kind = kind_of(record); kind != "operation" && kind != "checkpoint"
                                          && !record.has_node_clock()) // shown in the name of its process
      write_instant(record);
  }
  for (auto& x : unfinished_)
    write_unfinished(x);
  return {events_.take(), slices_, instants_};
}

void journal_trace_writer::write_names() {
  for (auto& x : places_.names()) {
    if (x.tid) {
      events_.name_thread({x.pid, *x.tid}, x.text);
      continue;
    }
    events_.name_process(x.pid, x.text);
    events_.sort_process(x.pid, x.pid);
  }
}

std::optional<uint64_t> journal_trace_writer::start_of(const proto::RankReport& x) const {
  auto start = starts_.find(attempt_of(x));
  return start == starts_.end() || !places_.has_node(device_id{x.device_id()}) ? std::nullopt
                                                                               : std::optional{start->second};
}

/// Without a duration: operations start while earlier ones run.
void journal_trace_writer::write_start(const proto::RankReport& x, uint64_t when_ns) {
  auto name = fmt::format("communicator {} starts {}", x.comm_id(), x.sequence());
  events_.slice(trace_places::operations, "start", name, time(when_ns), 0, {});
}

/// From the slice of the operation's start to the rank's slice.
void journal_trace_writer::write_arrow(const proto::RankReport& x, interval when) {
  auto start = start_of(x);
  if (!start)
    return;
  if (drawn_.insert(attempt_of(x)).second)
    write_start(x, *start);
  ++arrows_;
  events_.flow_start(trace_places::operations, "start", arrows_, time(*start));
  events_.flow_finish(track_of(device_id{x.device_id()}, stream_id{x.stream_id()}), "start", arrows_,
                      time(when.started_ns));
}

void journal_trace_writer::write_slice(const char* category, const std::string& name, device_id device,
                                       stream_id stream, interval when, const json_value& args) {
  ensure(when.started_ns <= when.ended_ns, "a slice does not end before it starts");
  const auto where = track_of(device, stream);
  events_.slice(where, category, name, time(when.started_ns), microseconds(when.ended_ns - when.started_ns), args);
  auto& free = free_ns_[{where.pid, where.tid}];
  free = std::max(free, when.ended_ns);
  ++slices_;
}

void journal_trace_writer::write_rank(const proto::RankReport& x, interval when, const std::string& fate) {
  auto known = operations_.find(attempt_of(x).first);
  auto label = known == operations_.end() ? operation_label{} : known->second;
  auto name = fmt::format("{} {}{}{}", label.kind, x.sequence(), fate.empty() ? "" : ": ", fate);
  write_slice("operation", name, device_id{x.device_id()}, stream_id{x.stream_id()}, when,
              {{"comm", x.comm_id()},
               {"epoch", x.epoch()},
               {"sequence", x.sequence()},
               {"rank", x.rank()},
               {"phase", fate.empty() ? lower_case(proto::RankReport::Phase_Name(x.phase())) : fate},
               {"algorithm", label.algorithm},
               {"bytes", label.bytes},
               {"bytes_received", x.bytes_received()},
               {"error", x.error()}});
  write_arrow(x, when);
}

/// A shared-memory operation has one record for all its ranks. It starts after the stream's previous slice.
void journal_trace_writer::write_shared_memory(const proto::OperationEnded& x) {
  proto::RankReport part;
  part.set_comm_id(x.comm_id());
  part.set_epoch(x.epoch());
  part.set_sequence(x.sequence());
  part.set_phase(proto::RankReport::COMMITTED);
  part.set_error(x.error());
  const auto whole = interval_of(x, x.ended_ns());
  for (int rank = 0; rank < x.device_ids_size(); ++rank) {
    const device_id device{x.device_ids(rank)};
    part.set_rank(static_cast<uint32_t>(rank));
    part.set_device_id(device.value);
    const auto where = track_of(device, {});
    auto free = free_ns_.find({where.pid, where.tid});
    auto started = free == free_ns_.end() ? whole.started_ns
                                          : std::clamp(free->second, whole.started_ns, whole.ended_ns);
    write_rank(part, {started, whole.ended_ns}, x.status() == gpu_sim::SUCCESS ? "" : "failed");
  }
}

/// For a device that hung or died: the operation that it was executing.
void journal_trace_writer::write_unfinished(const unfinished_rank& x) {
  proto::RankReport part;
  part.set_comm_id(x.operation.communicator.value);
  part.set_epoch(x.epoch.value);
  part.set_sequence(x.operation.sequence.value);
  part.set_rank(x.rank);
  part.set_device_id(x.device.value);
  part.set_error(x.cause);
  write_rank(part, {x.started_ns, x.ended_ns}, to_string(x.how));
}

void journal_trace_writer::write_command(const proto::CommandEnded& x, interval when) {
  write_slice("command", x.kind(), device_id{x.device_id()}, stream_id{x.stream_id()}, when,
              {{"bytes", x.bytes()}, {"error", x.error()}});
}

void journal_trace_writer::write_instant(const Record& record) {
  ++instants_;
  record_text_options opts;
  auto line = text_of(record, opts);
  auto text = std::string_view{line}.substr(line.find("  ") + 2); // without the time, which the event has
  events_.instant(trace_places::events, kind_of(record), text, time(record.time_ns()));
}

} // namespace

journal_trace trace_of(std::span<const Record> shown, std::span<const Record> context) {
  return journal_trace_writer{shown, context}.write();
}

journal_trace latest_trace_of(std::span<const Record> shown, std::span<const Record> context, uint64_t bytes_max) {
  constexpr double margin = 0.95; // records differ in size
  auto count = shown.size();
  for (;;) {
    auto result = trace_of(shown.last(count), context);
    result.omitted = shown.size() - count;
    if (result.json.size() <= bytes_max || count <= 1)
      return result;
    auto share = static_cast<double>(bytes_max) / static_cast<double>(result.json.size());
    count = std::max<size_t>(1, static_cast<size_t>(margin * share * static_cast<double>(count)));
  }
}

} // namespace ringmaster
