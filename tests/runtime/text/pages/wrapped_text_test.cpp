#include "runtime/text/pages/wrapped_text.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("wrapped text: lines are as long as allowed, and long words are not divided") {
  CHECK(wrapped_text("", 10).empty());
  CHECK(wrapped_text("one two three", 7) == "one two\nthree");
  CHECK(wrapped_text("one two three", 6) == "one\ntwo\nthree");
  CHECK(wrapped_text("  one \n two  ", 80) == "one two");
  CHECK(wrapped_text("a extraordinarily b", 5) == "a\nextraordinarily\nb");
}

TEST_CASE("wrapped text: all lines but the first are indented, and the first one continues a line") {
  CHECK(wrapped_text("one two three", 9, 2) == "one two\n  three");
  CHECK(wrapped_text("one two", 9, 2, 4) == "one\n  two");
  CHECK(wrapped_text("one two", 11, 2, 4) == "one two");
}

TEST_CASE("wrapped text: a percent sign stays with its number, and a character takes one column") {
  CHECK(wrapped_text("it is 31 % more", 8) == "it is\n31 %\nmore");
  CHECK(wrapped_text("31 %, 5 % x", 8) == "31 %,\n5 % x");
  CHECK(columns_of("\xc3\xa4\xc3\xb6 x") == 4);
  CHECK(wrapped_text("\xc3\xa4\xc3\xb6\xc3\xbc \xc3\xa4\xc3\xb6\xc3\xbc", 7)
        == "\xc3\xa4\xc3\xb6\xc3\xbc \xc3\xa4\xc3\xb6\xc3\xbc");
}
