#include "tools/console/page_format.hpp"

#include "runtime/text/pages/wrapped_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ringmaster {

page_format page_format::of_console(bool wide) {
  size_t columns = 0;
  if (const auto* text = std::getenv("COLUMNS"); text != nullptr) {
    const auto* end = text + std::strlen(text);
    if (const auto read = std::from_chars(text, end, columns); read.ec != std::errc{} || read.ptr != end)
      columns = 0;
  } else if (winsize size{}; ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    columns = size.ws_col;
  }
  return {.columns = columns == 0 ? columns_max : std::clamp(columns, columns_min, columns_max), .wide = wide};
}

std::string page_format::line(std::string_view text, size_t indent) const {
  return wrapped_text(text, columns, indent) + "\n";
}

std::string page_format::lines(std::string_view text) const {
  std::string result;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (wide || columns_of(line) <= columns) {
      result.append(line).append("\n");
      continue;
    }
    const auto start = std::min(line.find_first_not_of(' '), line.size());
    // The columns of a table, such as "  direct  391 us  why", keep their blanks, and the last one is wrapped below
    // itself.
    constexpr size_t text_columns_min = 30;
    const auto last_gap = line.substr(0, columns - text_columns_min).rfind("  ");
    const auto text_start = last_gap == line.npos || last_gap < start ? start : line.find_first_not_of(' ', last_gap);
    const auto indent = text_start == start ? start + 2 : text_start;
    result.append(line.substr(0, text_start))
      .append(wrapped_text(line.substr(text_start), columns, indent, text_start))
      .append("\n");
  }
  return result;
}

std::string page_format::bullet(std::string_view text) const {
  return "- " + wrapped_text(text, columns, 2, 2) + "\n";
}

} // namespace ringmaster
