#include "tools/console/terminal.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ringmaster {

terminal::terminal(std::FILE* out) : is_one_(::isatty(::fileno(out)) == 1) {
  const auto* no_color = std::getenv("NO_COLOR");
  colours_ = is_one_ && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
    columns_ = size.ws_col;
}

std::string terminal::fitted(std::string text, size_t indent) const {
  if (indent + text.size() > columns_)
    text.replace(columns_ - indent - 3, std::string::npos, "...");
  return text;
}

std::string terminal::painted(const char* code, std::string_view text) const {
  return colours_ ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string{text};
}

std::string with_commas(uint64_t x) {
  const auto digits = std::to_string(x);
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0)
      result += ',';
    result += digits[i];
  }
  return result;
}

} // namespace ringmaster
