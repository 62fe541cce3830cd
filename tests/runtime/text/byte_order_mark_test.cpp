#include "runtime/text/utf8.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace ringmaster;
using namespace std::string_view_literals;

TEST_CASE("byte_order_mark: that of UTF-8 is removed") {
  CHECK(without_byte_order_mark("\xef\xbb\xbftext") == "text");
  CHECK(without_byte_order_mark("text") == "text");
  CHECK(without_byte_order_mark("") == "");
  CHECK(without_byte_order_mark("\xef\xbb") == "\xef\xbb");
  CHECK(without_byte_order_mark("\xef\xbb\xbf\xef\xbb\xbfx") == "\xef\xbb\xbfx"); // within a text it is a character
}

TEST_CASE("byte_order_mark: UTF-16 and UTF-32 are recognised by their marks, UTF-16 also by its zero bytes") {
  const auto utf16 = "it is in UTF-16, and must be in UTF-8: `iconv -f UTF-16 -t UTF-8` converts it";
  for (auto text : {"\xff\xfe"sv, "\xfe\xff"sv, "\xff\xfe\x61\0"sv, "\xfe\xff\0a"sv, "[\0d\0"sv, "\0[\0d\0e"sv})
    CHECK(render(wide_encoding_problem(text)) == utf16);
  for (auto text : {"\xff\xfe\0\0"sv, "\0\0\xfe\xff\0\0\0a"sv})
    CHECK(render(wide_encoding_problem(text))
          == "it is in UTF-32, and must be in UTF-8: `iconv -f UTF-32 -t UTF-8` converts it");
  for (auto text : {""sv, "a"sv, "ab"sv, "abcd"sv, "\xef\xbb\xbf"sv, "a\0\0b"sv, "\0\0\0\0"sv})
    CHECK_FALSE(wide_encoding_problem(text));
}
