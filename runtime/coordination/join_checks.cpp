#include "runtime/coordination/join_checks.hpp"

#include "messages/errc.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

namespace ringmaster {

caf::error check_route(const std::string& who, const std::string& theirs, const std::string& clusters) {
  if (theirs.empty() || theirs == "auto" || theirs == clusters)
    return caf::none;
  return invalid(fmt::format("{} has route.use \"{}\", but its coordinator has \"{}\", which applies to the whole "
                             "cluster: omit it here, or start the coordinator with --route.use={} (caf-run: "
                             "in the file of --conf)",
                             who, theirs, clusters, theirs));
}

caf::error check_job(const std::string& who, const std::string& theirs, const std::string& ours) {
  if (theirs.empty() || theirs == ours)
    return caf::none;
  return make_error(
    errc::refused,
    fmt::format("{} belongs to the job \"{}\", but the coordinator that it found {}: ranks join no other job. Give "
                "this job a port of its own, the same on all of its ranks: MASTER_PORT=PORT, or "
                "RINGMASTER_COORDINATOR=HOST:PORT; to join that coordinator, set RINGMASTER_RUNNING_COORDINATOR to the "
                "same HOST:PORT as well",
                who, theirs, ours.empty() ? "serves no launcher's job" : fmt::format("serves the job \"{}\"", ours)));
}

namespace {

/// A continuation byte of a UTF-8 character.
bool is_behind_first(char x) {
  return (static_cast<unsigned char>(x) & 0xC0) == 0x80;
}

} // namespace

bool is_comm_name(const std::string& text) {
  return text.size() <= comm_name_bytes_max && !has_control_characters(text);
}

std::string as_comm_name(std::string text) {
  std::erase_if(text, is_control);
  if (text.size() <= comm_name_bytes_max)
    return text;
  auto end = comm_name_bytes_max;
  while (end > 0 && is_behind_first(text[end]))
    --end;
  text.resize(end);
  return text;
}

} // namespace ringmaster
