#include "tools/journal/log_options.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/options/trace_limit.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ringmaster {
namespace {

caf::expected<gpu_sim::Status> parse_outcome(const std::string& text) {
  for (auto [name, status] :
       {std::pair{"success", gpu_sim::SUCCESS}, {"failed", gpu_sim::FAILED}, {"in_progress", gpu_sim::IN_PROGRESS}})
    if (text == name)
      return status;
  return invalid(fmt::format("\"{}\" is none of success, failed, in_progress", text));
}

/// "1:17".
caf::expected<operation_key> parse_operation(const std::string& text) {
  const auto colon = text.find(':');
  const auto number = [](std::string_view digits) -> std::optional<uint64_t> {
    uint64_t value = 0;
    const auto end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{value} : std::nullopt;
  };
  const std::string_view all{text};
  const auto communicator = number(all.substr(0, colon));
  const auto sequence = colon == std::string::npos ? std::nullopt : number(all.substr(colon + 1));
  if (!communicator || !sequence)
    return invalid(fmt::format("\"{}\" is no operation: it is named COMMUNICATOR:SEQUENCE, such as 1:17", text));
  return operation_key{communicator_id{*communicator}, sequence_number{*sequence}};
}

} // namespace

void log_options::add_to(option_table& table) {
  table.about("Lists the journal in the directory DIR, oldest record first. The process that writes it may be running, "
              "have exited "
              "or have been killed.");
  auto set_dir = [this](const std::string& text) -> caf::error {
    if (!dir.empty())
      return invalid(fmt::format("one directory at a time: '{}' and '{}' were given", dir.string(), text));
    dir = text;
    return caf::none;
  };
  table.positional("DIR", set_dir).offers_directories().needed();
  table.number("--communicator", filter.communicator, 0).says("N", "only records of communicator N").otherwise("");
  table.number("--device", filter.device, 0).says("N|0xN", "only records that name the device").otherwise("");
  table.word("--kind", filter.kind, {record_kinds().begin(), record_kinds().end()})
    .says("KIND", "{words}; faults are injected ones: a loss is of kind device or node");
  table.flag("--audit", audit).says("who has changed what, from where: --kind audit");
  table.parsed("--outcome", filter.outcome, parse_outcome)
    .says("O",
          "{words}: only operations with this latest state, and commands, refused calls and aborted communicators with "
          "this outcome")
    .offers({"success", "failed", "in_progress"});
  table.number("--last", filter.last, 1).says("N", "only the latest N of these").otherwise("");
  table.flag("--relative", relative).says("times relative to the first record shown");
  table.flag("--samples", samples).says("the samples of each training step; steps and samples count from 0");
  table.parsed("--explain", explained, parse_operation)
    .says("OP", "what happened to operation OP, which is COMMUNICATOR:SEQUENCE: calls, attempts, verdicts, times");
  table.flag("--json", json).says("one JSON object a line");
  table.text("--trace", trace)
    .says("FILE", "write a trace to FILE, for ui.perfetto.dev or chrome://tracing")
    .offers_files();
  add_trace_limit(table, trace_bytes_max)
    .says("SIZE", "maximum size of a trace, at least 64K: it has the latest records that fit")
    .otherwise(size_text(trace_bytes_default));
  table.text("--flight-recorder", flight_recorder)
    .says("DIR", "write each rank's operations to DIR as a dump of PyTorch's Flight Recorder; see ringmaster diagnose")
    .offers_directories();
  table.flag("--follow", follow).says("continues with new records until interrupted");
  table.common({"--communicator", "--device", "--kind", "--audit", "--outcome", "--last", "--relative", "--json",
                "--trace", "--follow"});
  table.add_example("ringmaster log log --kind operation --outcome failed",
                    "failed operations, from the call to the end");
  table.add_example("ringmaster log log --explain 1:17", "what happened to operation 17 of communicator 1");
}

namespace {

std::string_view beside_samples(const log_options& x) {
  return x.follow                                                ? "--follow"
         : x.relative                                            ? "--relative"
         : !x.trace.empty()                                      ? "--trace"
         : x.filter.communicator                                 ? "--communicator"
         : x.filter.device                                       ? "--device"
         : x.filter.outcome                                      ? "--outcome"
         : !x.filter.kind.empty() && x.filter.kind != "training" ? "another --kind than training"
                                                                 : "";
}

std::string_view beside_dumps(const log_options& x) {
  return x.follow                 ? "--follow"
         : x.json                 ? "--json"
         : x.samples              ? "--samples"
         : !x.trace.empty()       ? "--trace"
         : x.filter.last != 0     ? "--last"
         : x.filter.device        ? "--device"
         : x.filter.outcome       ? "--outcome"
         : !x.filter.kind.empty() ? "--kind"
                                  : "";
}

std::string_view beside_story(const log_options& x) {
  return x.follow                     ? "--follow"
         : x.json                     ? "--json"
         : x.relative                 ? "--relative"
         : x.samples                  ? "--samples"
         : !x.trace.empty()           ? "--trace"
         : !x.flight_recorder.empty() ? "--flight-recorder"
         : x.filter.last != 0         ? "--last"
         : x.filter.communicator      ? "--communicator"
         : x.filter.device            ? "--device"
         : x.filter.outcome           ? "--outcome"
         : !x.filter.kind.empty()     ? "--kind"
                                      : "";
}

} // namespace

caf::error log_options::check() {
  if (audit && !filter.kind.empty())
    return invalid("--audit is --kind audit, so it does not go with another kind");
  if (audit)
    filter.kind = "audit";
  if (dir.empty())
    return invalid("the journal's directory is missing: ringmaster log DIR [options]");
  if (explained)
    if (auto other = beside_story(*this); !other.empty())
      return invalid(fmt::format("--explain tells the story of one operation, so it does not go with {}", other));
  if (!trace.empty() && (json || follow))
    return invalid(fmt::format("--trace writes a file and ends, so it does not go with {}",
                               json ? "--json" : "--follow"));
  if (!flight_recorder.empty())
    if (auto other = beside_dumps(*this); !other.empty())
      return invalid(fmt::format("--flight-recorder writes whole dumps and ends, so it does not go with {}", other));
  if (trace.empty() && trace_bytes_max)
    return invalid("--trace-limit is the maximum size of a --trace, which is missing");
  if (samples)
    if (auto other = beside_samples(*this); !other.empty())
      return invalid(fmt::format("--samples is a list of its own, so it does not go with {}", other));
  if (json && relative)
    return invalid("--relative changes the text only, so it does not go with --json");
  return caf::none;
}

} // namespace ringmaster
