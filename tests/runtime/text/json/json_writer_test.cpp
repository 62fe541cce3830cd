#include "runtime/text/json/json_writer.hpp"

#include "runtime/text/json/json_value.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace ringmaster;

TEST_CASE("json writer: puts between the values what has to stand there") {
  json_writer json;
  json.object().member("kind", "ring").list("ranks").value(0).value(-1).list().end().end().key("none").null();
  json.object("empty").end().member("yes", true).end();
  CHECK(json.take() == R"({"kind":"ring","ranks":[0,-1,[]],"none":null,"empty":{},"yes":true})");
  json.list().value("again").end();
  CHECK(json.take() == R"(["again"])");
}

TEST_CASE("json writer: a list may have a line for each entry, and blanks where people read") {
  json_writer json;
  json.object().list("all").value(1).line().value(2).line().object().member("a", 3).end().line().end().end();
  CHECK(json.take() == "{\"all\":[1,\n2,\n{\"a\":3}\n]}");
  json_writer spaced{json_writer::style::spaced};
  spaced.object().member("a", 1).list("b").value(2).value(3).end().end();
  CHECK(spaced.take() == R"({"a": 1, "b": [2, 3]})");
}

TEST_CASE("json writer: numbers keep the digits that are asked for, and one that JSON has not is null") {
  json_writer json;
  json.list().value(0.1).rounded(0.1, 6).fixed(0.1, 3).value(UINT64_MAX).value(std::numeric_limits<double>::infinity());
  json.fixed(-std::numeric_limits<double>::quiet_NaN(), 2).literal("1.50");
  json.value(std::optional{2}).value(std::optional<double>{}).end();
  CHECK(json.take() == "[0.10000000000000001,0.1,0.100,18446744073709551615,null,null,1.50,2,null]");
}

TEST_CASE("json writer: what it writes of any text, its own reader reads") {
  const std::string text = "a \"quoted\" \\ line\n\x01 and \xc3\xa9";
  json_writer json;
  json.object().member(text, text).end();
  auto read = parse_json(json.take());
  REQUIRE(read);
  CHECK(read->keys[0].name == text);
  CHECK(read->entries[0].text == text);
}
