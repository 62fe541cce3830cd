#include "runtime/text/byte_order_mark.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace std::string_view_literals;

namespace {

struct wide_encoding {
  std::string_view start;
  const char* name;
};

/// Those of four bytes first: UTF-32's mark starts as that of UTF-16 does.
constexpr wide_encoding marks[] = {
  {"\xff\xfe\0\0"sv, "UTF-32"},
  {"\0\0\xfe\xff"sv, "UTF-32"},
  {"\xff\xfe"sv, "UTF-16"},
  {"\xfe\xff"sv, "UTF-16"},
};

/// Without a mark: of its first characters, which are ASCII in what is read here, every other byte is zero.
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

size_t byte_order_mark_bytes(std::string_view text) {
  constexpr auto mark = "\xef\xbb\xbf"sv;
  return text.starts_with(mark) ? mark.size() : 0;
}

std::string wide_encoding_problem(std::string_view text) {
  const char* name = looks_like_utf16(text) ? "UTF-16" : nullptr;
  for (auto& each : marks)
    if (name == nullptr && text.starts_with(each.start))
      name = each.name;
  return name == nullptr ? std::string{}
                         : fmt::format("it is in {0}, and must be in UTF-8: `iconv -f {0} -t UTF-8` converts it", name);
}

} // namespace ringmaster
