#include "tools/processes/watched_process.hpp"

#include <doctest/doctest.h>

#include <random>

using ringmaster::launch::line_prefixer;

TEST_CASE("line_prefixer: puts the name before each line") {
  line_prefixer lines("node-1");
  CHECK(lines.feed("one\n\ntwo\n") == "[node-1] one\n[node-1] \n[node-1] two\n");
  CHECK(lines.flush() == "");
}

TEST_CASE("line_prefixer: holds a begun line back until it is ended or flushed") {
  line_prefixer lines("a");
  CHECK(lines.feed("begun") == "");
  CHECK(lines.feed(" and ended\nleft") == "[a] begun and ended\n");
  CHECK(lines.flush() == "[a] left\n");
  CHECK(lines.flush() == "");
}

TEST_CASE("line_prefixer: drops the carriage return of a remote shell") {
  line_prefixer lines("a");
  CHECK(lines.feed("one\r\ntwo\r") == "[a] one\n");
  CHECK(lines.flush() == "[a] two\n");
}

TEST_CASE("line_prefixer: cuts a line without end into lines of the limit") {
  line_prefixer lines("a");
  std::string longest(line_prefixer::max_line_bytes, 'x');
  CHECK(lines.feed(longest + "yz") == "[a] " + longest + "\n");
  CHECK(lines.feed("\n") == "[a] yz\n");
}

TEST_CASE("line_prefixer: remembers the last line with something on it") {
  line_prefixer lines("a");
  CHECK(lines.last_line() == "");
  lines.feed("first\nthe reason\n\n  \nbegun");
  CHECK(lines.last_line() == "the reason");
  lines.flush();
  CHECK(lines.last_line() == "begun");
}

TEST_CASE("line_prefixer: gives the same lines however the bytes are cut") {
  std::mt19937 random(20240817);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i)
      text += "ab\n"[random() % 3];
    line_prefixer whole("n"), pieces("n");
    std::string got;
    for (size_t at = 0; at < text.size();) {
      auto bytes = random() % 8;
      got += pieces.feed(std::string_view{text}.substr(at, bytes));
      at += bytes;
    }
    got += pieces.flush();
    auto expected = whole.feed(text);
    expected += whole.flush();
    CHECK(got == expected);
  }
}
