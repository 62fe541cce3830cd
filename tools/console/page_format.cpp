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

std::string page_format::bullet(std::string_view text) const {
  return "- " + wrapped_text(text, columns, 2, 2) + "\n";
}

} // namespace ringmaster
