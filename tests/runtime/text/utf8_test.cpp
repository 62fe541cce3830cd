#include "runtime/text/utf8.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("utf8: accepts well-formed text and does not change it") {
  for (std::string text :
       {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x92\xA5", "\xF4\x8F\xBF\xBF", "a\xC2\x80z"}) {
    CAPTURE(text);
    CHECK(is_utf8(text));
    CHECK(as_utf8(text) == text);
  }
}

TEST_CASE("utf8: printable text has no line feeds and no terminal commands") {
  CHECK(printable("caf\xC3\xA9 1") == "caf\xC3\xA9 1");
  CHECK(printable("a\nb\x1b[31m\x7f") == "a\\x0ab\\x1b[31m\\x7f");
  CHECK(printable("\x80z") == "\xEF\xBF\xBDz");
  CHECK(printable("a\xC2\x9B"
                  "31m\xC2\xA0")
        == "a\\x9b31m\xC2\xA0"); // a terminal's 8-bit commands, and a space
}

TEST_CASE("utf8: refuses and repairs malformed text") {
  // Lone continuation, cut short, overlong (two, three, four bytes), surrogate, above U+10FFFF, no such lead byte.
  for (std::string text : {"\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x92", "\xC0\xAF", "\xE0\x80\x80", "\xF0\x80\x80\x80",
                           "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "ok\xE9", "\xE9ok"}) {
    CAPTURE(text);
    CHECK(!is_utf8(text));
    CHECK(is_utf8(as_utf8(text)));
  }
  CHECK(as_utf8("a\xE9"
                "b\xC3\xA9")
        == "a\xEF\xBF\xBD"
           "b\xC3\xA9");
}

TEST_CASE("lower case: ASCII letters change, and nothing else does") {
  CHECK(lower_case("ALL_REDUCE @[`{ 7 z") == "all_reduce @[`{ 7 z");
  CHECK(lower_case("\xc3\x84"
                   "A")
        == "\xc3\x84"
           "a"); // a letter of two bytes stays
}
