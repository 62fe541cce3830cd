#include "runtime/text/utf8.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace ringmaster {

using namespace std::string_view_literals;

namespace {

// Bytes of the character that `text` begins with, or 0 where it begins with none.
size_t character_bytes(std::string_view text) {
  auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80)
    return 1;
  auto size = lead >= 0xC2 && lead <= 0xDF ? 2u : (lead & 0xF0) == 0xE0 ? 3u : lead >= 0xF0 && lead <= 0xF4 ? 4u : 0u;
  if (size == 0 || text.size() < size)
    return 0;
  for (size_t i = 1; i < size; ++i)
    if ((static_cast<uint8_t>(text[i]) & 0xC0) != 0x80)
      return 0;
  auto second = static_cast<uint8_t>(text[1]);
  auto overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  auto surrogate = lead == 0xED && second >= 0xA0;
  auto too_large = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : size;
}

struct wide_encoding {
  std::string_view start;
  const char* name;
};

/// Marks of four bytes first: that of UTF-32 starts with that of UTF-16.
constexpr wide_encoding marks[] = {
  {"\xff\xfe\0\0"sv, "UTF-32"},
  {"\0\0\xfe\xff"sv, "UTF-32"},
  {"\xff\xfe"sv, "UTF-16"},
  {"\xfe\xff"sv, "UTF-16"},
};

/// Without a mark: texts that are read here start with ASCII characters, so every other byte is zero.
bool looks_like_utf16(std::string_view text) {
  constexpr size_t looked_at = 4;
  if (text.size() < looked_at || text.size() % 2 != 0)
    return false;
  const bool low_first = text[0] != '\0';
  for (size_t i = 0; i < looked_at; ++i)
    if ((text[i] != '\0') != (low_first == (i % 2 == 0)))
      return false;
  return true;
}

} // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    auto size = character_bytes(text);
    if (size == 0)
      return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    auto size = character_bytes(text);
    if (size == 0)
      result += "\xEF\xBF\xBD";
    else
      result += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return result;
}

std::string lower_case(std::string text) {
  for (auto& x : text)
    if (x >= 'A' && x <= 'Z')
      x = static_cast<char>(x - 'A' + 'a');
  return text;
}

std::string printable(std::string_view text) {
  const auto whole = as_utf8(text);
  std::string result;
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto next = i + 1 < whole.size() ? static_cast<uint8_t>(whole[i + 1]) : 0u;
    const bool is_of_8_bits = whole[i] == '\xC2' && next >= 0x80 && next < 0xA0; // U+0080 to U+009F
    if (is_of_8_bits)
      ++i;
    if (is_of_8_bits || is_control(whole[i]))
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<uint8_t>(whole[i]));
    else
      result += whole[i];
  }
  return result;
}

size_t byte_order_mark_bytes(std::string_view text) {
  constexpr auto mark = "\xef\xbb\xbf"sv;
  return text.starts_with(mark) ? mark.size() : 0;
}

caf::error wide_encoding_problem(std::string_view text) {
  const char* name = looks_like_utf16(text) ? "UTF-16" : nullptr;
  for (auto& each : marks)
    if (name == nullptr && text.starts_with(each.start))
      name = each.name;
  if (name == nullptr)
    return {};
  return malformed(fmt::format("it is in {0}, and must be in UTF-8: `iconv -f {0} -t UTF-8` converts it", name));
}

} // namespace ringmaster
