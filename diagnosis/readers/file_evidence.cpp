#include "diagnosis/readers/file_evidence.hpp"

#include "diagnosis/readers/dump_tree.hpp"
#include "diagnosis/readers/flight_recorder_dump.hpp"
#include "diagnosis/readers/job_log.hpp"
#include "diagnosis/readers/log_lines.hpp"
#include "diagnosis/readers/ras_status.hpp"
#include "diagnosis/readers/stack_dump.hpp"
#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster::diagnosis {

std::string_view name_of(evidence_form x) {
  switch (x) {
    case evidence_form::flight_recorder_dump: return "Flight Recorder dump";
    case evidence_form::ras_status: return "NCCL RAS status";
    case evidence_form::stack_dump: return "py-spy dump";
    case evidence_form::job_log: return "log";
    case evidence_form::unknown: return "unknown file";
  }
  return {};
}

namespace {

caf::error read_values(parsed_dump& dump, file_evidence& to) {
  if (is_flight_recorder_dump(dump)) {
    to.form = evidence_form::flight_recorder_dump;
    return read_flight_recorder_dump(dump, to);
  }
  if (is_ras_json(dump)) {
    to.form = evidence_form::ras_status;
    return read_ras_json(dump, to);
  }
  if (read_stack_dump(dump, to)) {
    to.form = evidence_form::stack_dump;
    return caf::none;
  }
  return malformed(
    "this is no Flight Recorder dump, which has \"entries\" and \"pg_config\", no RAS status, and no list "
    "of stacks");
}

/// Pickles of protocol 2 and later start with PROTO; older ones with one of these, and have bytes that no text has.
bool is_pickle(std::string_view bytes) {
  return bytes.size() > 1 && (bytes[0] == '\x80' || ((bytes[0] == '(' || bytes[0] == '}') && bytes.ends_with('.')));
}

caf::error read_into(file_evidence& to, std::string_view bytes) {
  if (is_pickle(bytes)) {
    auto dump = parse_pickle(bytes);
    return dump ? read_values(*dump, to) : std::move(dump.error());
  }
  auto text = trimmed(bytes);
  if (text.starts_with('{') || text.starts_with("[{")
      || (text.starts_with('[') && trimmed(text.substr(1)).starts_with('{'))) {
    auto dump = parse_json_dump(bytes);
    return dump ? read_values(*dump, to) : std::move(dump.error());
  }
  if (is_ras_text(bytes)) {
    to.form = evidence_form::ras_status;
    read_ras_text(bytes, to);
    return caf::none;
  }
  const auto stacks = read_stack_dump(bytes, to); // a log may have both
  const auto lines = read_job_log(bytes, to);
  to.form = lines != 0 ? evidence_form::job_log : stacks != 0 ? evidence_form::stack_dump : evidence_form::unknown;
  return caf::none;
}

} // namespace

caf::expected<file_evidence> read_evidence(std::string name, std::string_view bytes) {
  file_evidence result;
  result.name = std::move(name);
  if (auto problem = read_into(result, bytes))
    return malformed(fmt::format("{}: {}", result.name, render(problem)));
  return result;
}

} // namespace ringmaster::diagnosis
