#include "diagnosis/readers/log_lines.hpp"

#include <charconv>

namespace ringmaster::diagnosis {

std::optional<std::string_view> after(std::string_view line, std::string_view key) {
  auto at = line.find(key);
  if (at == line.npos)
    return {};
  return line.substr(at + key.size());
}

std::string_view word_after(std::string_view line, std::string_view key) {
  auto rest = after(line, key);
  return rest ? rest->substr(0, rest->find_first_of(" ,\t")) : std::string_view{};
}

std::optional<uint64_t> leading_number(std::string_view text, int base) {
  if (base == 16 && text.starts_with("0x"))
    text.remove_prefix(2);
  uint64_t x = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x, base);
  return problem == std::errc{} ? std::optional{x} : std::nullopt;
}

std::optional<uint64_t> number_after(std::string_view line, std::string_view key, int base) {
  auto rest = after(line, key);
  return rest ? leading_number(*rest, base) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool take_line(std::string_view& text, std::string_view& line) {
  if (text.empty())
    return false;
  auto end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  return true;
}

} // namespace ringmaster::diagnosis
