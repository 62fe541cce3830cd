#include "tools/diagnose/diagnose_report.hpp"

#include "diagnosis/findings/stack_places.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ringmaster {

namespace {

using namespace diagnosis;

constexpr size_t frames_shown = 6;

std::string short_time(int64_t ns) {
  return ns == 0 ? "-" : time_text(ns).substr(11, 12);
}

std::string sizes_of(const job_records& job, const rank_call& call) {
  auto& shape = job.shapes[call.shape];
  auto in = job.texts.text(shape.input_sizes), out = job.texts.text(shape.output_sizes);
  return fmt::format("{}{} {}", in, in == out ? "" : fmt::format(" to {}", out), job.texts.text(shape.input_types));
}

std::string link_text(const job_records& job, const wait_link& x) {
  auto text = fmt::format("{} {} in {}", ranks_text(x.waiting), x.waiting.size() == 1 ? "waits" : "wait",
                          job.name_of_call(x.call));
  if (x.since_ns != 0)
    text += " since " + short_time(x.since_ns);
  if (!x.waits_for.empty())
    text += fmt::format(" for {}, which {}", ranks_text(x.waits_for), x.reason);
  return text;
}

/// The stack of the rank now, or else of its call.
std::string stack_text(const job_records& job, const evidence_row& row) {
  auto* records = job.find(row.rank);
  uint32_t stack = row.call.stack;
  std::string_view what = row.made ? "called from" : "last called from";
  if (records != nullptr)
    for (auto& thread : records->threads)
      if (thread.is_main) {
        stack = thread.stack;
        what = "now in";
      }
  std::string result;
  for (auto& frame : own_frames(job, job.stacks[stack], frames_shown))
    result += fmt::format("{}{}", result.empty() ? "" : " < ", job.text_of(frame));
  return result.empty() ? result : fmt::format("rank {}: {} {}\n", row.rank, what, result);
}

std::string evidence_text(const job_records& job, const diagnosis_result& x) {
  std::string result;
  for (auto& row : x.evidence) {
    auto* records = job.find(row.rank);
    auto host = records == nullptr || records->host.empty() ? std::string{} : " on " + records->host;
    auto text = row.call.name == 0 && row.call.created_ns == 0 && row.call.sequence == 0
                  ? std::string{"no record"}
                  : fmt::format("{}{}, {}, {}, called at {}", row.made ? "" : "last call ", job.name_of_call(row.call),
                                sizes_of(job, row.call), name_of(row.call.state), short_time(row.call.created_ns));
    result += fmt::format("  {}rank {}{}: {}\n", row.is_cause ? "* " : "  ", row.rank, host, text);
    if (auto stack = stack_text(job, row); !stack.empty())
      result += "      " + stack;
  }
  return result;
}

template <class Items, class Text>
std::string section(std::string_view title, const Items& items, Text text) {
  if (items.empty())
    return {};
  auto result = fmt::format("\n{}\n", title);
  for (auto& item : items)
    result += fmt::format("  - {}\n", text(item));
  return result;
}

json_value json_of_call(const job_records& job, const rank_call& call) {
  json_value result;
  result["group"] = job.groups[call.group].name;
  result["group_description"] = job.groups[call.group].description;
  result["collective"] = job.texts.text(call.name);
  result["sequence"] = call.sequence;
  result["state"] = name_of(call.state);
  result["input_sizes"] = job.texts.text(job.shapes[call.shape].input_sizes);
  result["type"] = job.texts.text(job.shapes[call.shape].input_types);
  result["created_ns"] = call.created_ns;
  return result;
}

json_value json_of_cause(const job_records& job, const cause& x) {
  json_value result;
  result["sentence"] = sentence_of(job, x);
  result["kind"] = name_of(x.kind);
  result["certainty"] = name_of(x.sure);
  result["ranks"] = x.ranks;
  result["hosts"] = json_value::array();
  for (auto rank : x.ranks) {
    auto* records = job.find(rank);
    result["hosts"].push_back(records == nullptr ? "" : records->host);
  }
  if (x.has_call)
    result["awaited"] = json_of_call(job, x.awaited);
  if (x.has_made)
    result["called_instead"] = json_of_call(job, x.made);
  result["place"] = x.place;
  result["ranks_waiting"] = x.waiting;
  return result;
}

} // namespace

std::string report_of(const job_records& job, const diagnosis_result& x, const page_format& page) {
  auto result = sentence_of(job, x.root) + "\n";
  result += fmt::format("({}; {} have records, {} wait)\n", name_of(x.root.sure), counted(x.ranks_known, "rank"),
                        x.ranks_waiting);
  result += section("Who waits for whom", x.chain, [&](auto& link) { return link_text(job, link); });
  if (!x.evidence.empty())
    result += "\nThe calls side by side (* the cause)\n" + evidence_text(job, x);
  auto same = [](auto& text) { return text; };
  result += section("What makes this less than certain", x.doubts, same);
  result += section("About the evidence", job.remarks, same);
  result += section("What to check next", x.checks, same);
  return page.lines(result);
}

std::string json_of(const job_records& job, const diagnosis_result& x) {
  auto result = json_of_cause(job, x.root);
  result["ranks_known"] = x.ranks_known;
  result["others"] = json_value::array();
  for (auto& other : x.others)
    result["others"].push_back(json_of_cause(job, other));
  result["chain"] = json_value::array();
  for (auto& link : x.chain) {
    json_value each;
    each["waiting"] = link.waiting;
    each["call"] = json_of_call(job, link.call);
    each["waits_for"] = link.waits_for;
    each["reason"] = link.reason;
    result["chain"].push_back(std::move(each));
  }
  result["evidence"] = json_value::array();
  for (auto& row : x.evidence) {
    json_value each;
    each["rank"] = row.rank;
    each["is_cause"] = row.is_cause;
    each["has_called"] = row.made;
    each["call"] = json_of_call(job, row.call);
    result["evidence"].push_back(std::move(each));
  }
  result["doubts"] = x.doubts;
  result["remarks"] = job.remarks;
  result["checks"] = x.checks;
  return json_text(std::move(result)) + "\n";
}

} // namespace ringmaster
