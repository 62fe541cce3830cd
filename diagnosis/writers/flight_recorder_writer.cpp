#include "diagnosis/writers/flight_recorder_writer.hpp"

#include "diagnosis/writers/pickle_writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <map>
#include <set>
#include <tuple>

namespace ringmaster::diagnosis {

namespace {

class dump_writer {
public:
  dump_writer(const job_records& job, const rank_records& rank) : job_(job), rank_(rank) {}

  std::string write() && {
    out_.open_map();
    field("version", "2.10");
    field("comm_lib_version", "ringmaster");
    field("rank", rank_.rank);
    field("host", rank_.host);
    if (rank_.pid)
      field("pid", static_cast<int64_t>(*rank_.pid));
    if (rank_.dumped_ns != 0)
      field("dump_time_ns", rank_.dumped_ns);
    write_groups();
    write_progress();
    out_.text("entries");
    out_.open_list();
    for (size_t i = 0; i < rank_.calls.size(); ++i)
      if (rank_.calls[i].form != call_form::creation)
        write_entry(i, rank_.calls[i]);
    out_.close_list();
    out_.close_map();
    return std::move(out_).finish();
  }

private:
  void field(std::string_view key, std::string_view x) {
    out_.text(key);
    out_.text(x);
  }
  void field(std::string_view key, const char* x) { field(key, std::string_view{x}); }
  template <std::integral Integer>
  void field(std::string_view key, Integer x) {
    out_.text(key);
    out_.integer(static_cast<int64_t>(x));
  }
  void flag(std::string_view key, bool x) {
    out_.text(key);
    out_.boolean(x);
  }
  void time(std::string_view key, int64_t ns) {
    out_.text(key);
    ns == 0 ? out_.none() : out_.integer(ns);
  }
  void write_groups();
  void write_progress();
  void write_entry(size_t id, const rank_call& call);
  void write_frames(const call_stack& stack);
  void write_sizes(std::string_view key, text_id sizes);
  void write_types(std::string_view key, text_id types);
  std::string profiling_name(const rank_call& call) const;
  std::set<uint32_t> own_groups() const;

  const job_records& job_;
  const rank_records& rank_;
  pickle_writer out_;
  std::map<std::tuple<text_id, text_id, uint32_t>, uint32_t> frames_; ///< Slots of frames that were written.
};

std::set<uint32_t> dump_writer::own_groups() const {
  std::set<uint32_t> result;
  for (uint32_t i = 0; i < job_.groups.size(); ++i)
    if (std::ranges::find(job_.groups[i].members, rank_.rank) != job_.groups[i].members.end())
      result.insert(i);
  for (auto& call : rank_.calls)
    result.insert(call.group);
  return result;
}

void dump_writer::write_groups() {
  out_.text("pg_config");
  out_.open_map();
  for (auto i : own_groups()) {
    auto& group = job_.groups[i];
    out_.text(group.name);
    out_.open_map();
    field("name", group.name);
    field("desc", group.description);
    field("ranks", fmt::format("[{}]", fmt::join(group.members, ", ")));
    out_.close_map();
  }
  out_.close_map();
}

void dump_writer::write_progress() {
  out_.text("pg_status");
  out_.open_map();
  for (auto i : own_groups()) {
    int64_t enqueued = -1, started = -1, completed = -1;
    for (auto& call : rank_.calls)
      if (call.group == i && call.form == call_form::collective) {
        auto sequence = static_cast<int64_t>(call.sequence);
        enqueued = std::max(enqueued, sequence);
        if (call.state != call_state::scheduled)
          started = std::max(started, sequence);
        if (call.state == call_state::completed)
          completed = std::max(completed, sequence);
      }
    out_.text(std::to_string(i));
    out_.open_map();
    field("last_enqueued_collective", enqueued);
    field("last_started_collective", started);
    field("last_completed_collective", completed);
    out_.close_map();
  }
  out_.close_map();
}

std::string dump_writer::profiling_name(const rank_call& call) const {
  auto name = fmt::format("nccl:{}", job_.texts.text(call.name));
  if (call.form != call_form::send && call.form != call_form::receive)
    return name;
  auto& members = job_.groups[call.group].members;
  auto own = std::ranges::find(members, rank_.rank) - members.begin();
  return fmt::format("{} {}{}{}", name, own, call.form == call_form::send ? "->" : "<-", call.peer);
}

void dump_writer::write_frames(const call_stack& stack) {
  out_.text("frames");
  out_.open_list();
  for (auto& frame : stack) {
    auto [slot, added] = frames_.try_emplace(std::tuple{frame.function, frame.file, frame.line});
    if (!added) {
      out_.recall(slot->second);
      continue;
    }
    out_.open_map();
    field("name", job_.texts.text(frame.function));
    field("filename", job_.texts.text(frame.file));
    field("line", frame.line);
    out_.close_map();
    slot->second = out_.remember();
  }
  out_.close_list();
}

/// "[[4, 8], [2]]" as lists of numbers.
void dump_writer::write_sizes(std::string_view key, text_id sizes) {
  out_.text(key);
  out_.open_list();
  auto text = job_.texts.text(sizes);
  for (size_t i = text.empty() ? 0 : 1; i < text.size(); ++i) {
    int64_t dim = 0;
    if (text[i] == '[') {
      out_.open_list();
    } else if (text[i] == ']' && i + 1 < text.size()) {
      out_.close_list();
    } else if (auto [end, problem] = std::from_chars(text.data() + i, text.data() + text.size(), dim);
               problem == std::errc{}) {
      out_.integer(dim);
      i = static_cast<size_t>(end - text.data()) - 1;
    }
  }
  out_.close_list();
}

void dump_writer::write_types(std::string_view key, text_id types) {
  out_.text(key);
  out_.open_list();
  auto text = job_.texts.text(types);
  while (!text.empty()) {
    auto comma = text.find(", ");
    out_.text(text.substr(0, comma));
    text.remove_prefix(comma == text.npos ? text.size() : comma + 2);
  }
  out_.close_list();
}

void dump_writer::write_entry(size_t id, const rank_call& call) {
  auto& group = job_.groups[call.group];
  auto& shape = job_.shapes[call.shape];
  const bool p2p = call.form == call_form::send || call.form == call_form::receive || call.form == call_form::batch;
  out_.open_map();
  write_frames(job_.stacks[call.stack]);
  // A ring that has overwritten calls starts with another number.
  field("record_id", id + (rank_.wrapped ? 1 : 0));
  field("pg_id", call.group);
  out_.text("process_group");
  out_.pair(group.name, group.description);
  field("collective_seq_id", p2p ? 0 : call.sequence);
  field("p2p_seq_id", p2p ? call.sequence : 0);
  field("op_id", id);
  field("profiling_name", profiling_name(call));
  field("time_created_ns", call.created_ns);
  write_sizes("input_sizes", shape.input_sizes);
  write_types("input_dtypes", shape.input_types);
  write_sizes("output_sizes", shape.output_sizes);
  write_types("output_dtypes", shape.output_types);
  field("state", name_of(call.state));
  time("time_discovered_started_ns", call.started_ns);
  time("time_discovered_completed_ns", call.completed_ns);
  flag("retired", call.state == call_state::completed);
  field("timeout_ms", 600'000);
  flag("is_p2p", p2p);
  if (call.root != rank_call::no_root)
    field("root", call.root);
  out_.close_map();
}

} // namespace

std::string flight_recorder_dump(const job_records& job, const rank_records& rank) {
  return dump_writer{job, rank}.write();
}

std::string dump_name(uint32_t rank) {
  return fmt::format("ringmaster_rank_{}", rank);
}

} // namespace ringmaster::diagnosis
