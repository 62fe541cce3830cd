#include "runtime/text/ini_section.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <optional>

namespace ringmaster {

namespace {

/// The line without surrounding blanks and without a comment.
std::string_view statement_of(std::string_view line) {
  constexpr auto blanks = " \t\r\n";
  line = line.substr(0, line.find(';'));
  auto first = line.find_first_not_of(blanks);
  return first == line.npos ? std::string_view{} : line.substr(first, line.find_last_not_of(blanks) + 1 - first);
}

} // namespace

caf::expected<std::string> replace_section(std::string_view text, std::string_view name, std::string_view section) {
  auto header = fmt::format("[{}]", name);
  std::optional<size_t> begin;
  size_t end = 0;
  bool inside = false;
  for (size_t at = 0, next = 0; at < text.size(); at = next) {
    next = text.find('\n', at);
    next = next == text.npos ? text.size() : next + 1;
    auto statement = statement_of(text.substr(at, next - at));
    if (statement == header) {
      if (begin)
        return make_error(errc::invalid_config, fmt::format("section {} appears twice; it must appear once", header));
      begin = at;
      inside = true;
    } else if (statement.starts_with('[')) {
      inside = false;
    }
    if (inside && !statement.empty())
      end = next;
  }
  ensure(!begin || (*begin < end && end <= text.size()), "a section is a part of the text");
  if (begin)
    return fmt::format("{}{}{}", text.substr(0, *begin), section, text.substr(end));
  auto gap = text.empty() ? "" : text.ends_with('\n') ? "\n" : "\n\n";
  return fmt::format("{}{}{}", text, gap, section);
}

} // namespace ringmaster
