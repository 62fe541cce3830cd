#include "runtime/text/json_field.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>

using namespace ringmaster;

namespace {

std::string refusal(std::string_view document) {
  auto read = parse_json(document);
  REQUIRE(!read);
  CHECK(code_of(read.error()) == errc::invalid_argument);
  return render(read.error());
}

template <class T>
std::string refusal(const caf::expected<T>& x) {
  REQUIRE(!x);
  CHECK(code_of(x.error()) == errc::invalid_argument);
  return render(x.error());
}

} // namespace

TEST_CASE("json: text that is not JSON is refused with line and column") {
  CHECK(
    refusal("").starts_with("line 1, column 1: this is not JSON: syntax error while parsing value - unexpected end"));
  CHECK(
    refusal("{\"a\": 1,\n \"b\" 2}")
    == "line 2, column 6: this is not JSON: syntax error while parsing object separator - unexpected number literal; "
       "expected ':'");
  CHECK(refusal("[1,\n2\n").starts_with("line 3, column 1: "));
  CHECK(refusal("[1, ]").starts_with("line 1, column 5: "));
  CHECK(refusal("[\"\u20ac\", x]").starts_with("line 1, column 7: ")); // columns are characters, not bytes
  CHECK(refusal("[] []").starts_with("line 1, column 4: "));
  CHECK(refusal("\"\xff\"").find("ill-formed UTF-8") != std::string::npos);
  CHECK(refusal(R"("\ud83d")").find("surrogate") != std::string::npos);
  for (auto number : {"01", "1.", ".5", "-", "+1", "1e", "1e+", "0x10", "nan", "inf"}) {
    CAPTURE(number);
    CHECK(refusal(number).find("this is not JSON") != std::string::npos);
  }
  CHECK(refusal("[1e999]").find("number overflow parsing '1e999'") != std::string::npos);
}

TEST_CASE("json: a key that appears twice in an object is refused, and very deep documents are") {
  CHECK(refusal(R"({"a": 1, "b": {"a": 1, "a": 2}})") == "the key \"a\" appears twice in an object");
  CHECK(parse_json(R"([{"a": 1}, {"a": 2}, {"b": {"a": 1}, "a": 2}])"));
  CHECK(parse_json(std::string(64, '[') + std::string(64, ']')));
  CHECK(refusal(std::string(65, '[') + std::string(65, ']')) == "there are more than 64 levels of lists and objects");
}

TEST_CASE("json: a byte order mark at the start is skipped, and UTF-16 is refused with a sentence") {
  CHECK(*parse_json("\xef\xbb\xbf 3") == 3);
  CHECK(refusal("3 \xef\xbb\xbf").find("this is not JSON") != std::string::npos);
  CHECK(refusal(std::string_view{"\xff\xfe{\0}\0", 6}).find("this is not JSON: it is in UTF-16, and must be in UTF-8")
        != std::string::npos);
}

TEST_CASE("json: objects keep the order of their keys, and numbers their value") {
  CHECK(json_text({{"b", 1}, {"a", {{"x", 0.1}, {"n", UINT64_MAX}}}})
        == R"({"b":1,"a":{"x":0.1,"n":18446744073709551615}})");
  CHECK(json_text({{"whole", 124439808.0}, {"zero", -0.0}, {"large", 1e300}, {"list", {2.0, 2.5}}})
        == R"({"whole":124439808,"zero":0,"large":1e+300,"list":[2,2.5]})");
  CHECK(json_text(std::numeric_limits<double>::infinity()) == "null");
  CHECK(rounded(0.123456789, 3) == 0.123);
  CHECK(rounded(0, 3) == 0);
}

TEST_CASE("json: a text is written as it is read, and bytes that are not UTF-8 are replaced") {
  const std::string text{"a \"b\" \\ c\n\x01 \xc3\xa9"};
  auto read = parse_json(json_text(json_value(text)));
  REQUIRE(read);
  CHECK(*read == text);
  CHECK(json_text("a\xff"
                  "b")
        == "\"a\xef\xbf\xbd"
           "b\"");
}

TEST_CASE("json field: what is wrong is named with its path, what is allowed, and the value") {
  const auto document = parse_json(R"({"n": 5, "f": 0.5, "t": "x", "l": [1, "two"], "o": {"k": null}, "yes": true})");
  REQUIRE(document);
  const json_field all{"file", *document};
  CHECK(*all.at("n").number(5) == 5);
  CHECK(refusal(all.at("n").number(4)) == "file, \"n\": must be a whole number from 0 to 4, and is 5");
  CHECK(refusal(all.at("f").number(4)) == "file, \"f\": must be a whole number from 0 to 4, and is 0.5");
  CHECK(refusal(all.at("m").number(4)) == "file, \"m\": must be a whole number from 0 to 4, and is missing");
  CHECK(*all.at("m").number(4, 3) == 3);
  CHECK(*all.at("f").positive() == 0.5);
  CHECK(refusal(all.at("t").amount(1)) == "file, \"t\": must be a number from 0 to 1, and is \"x\"");
  CHECK(*all.at("t").text() == "x");
  CHECK(refusal(all.at("n").text()) == "file, \"n\": must be a text in quotes, and is 5");
  const auto list = all.at("l").list();
  REQUIRE(list);
  CHECK(refusal(list->at(1).number(9)) == "file, \"l\", entry 1: must be a whole number from 0 to 9, and is \"two\"");
  CHECK(*all.at("yes").flag());
  CHECK_FALSE(*all.at("m").flag());
  CHECK(all.at("o").at("k").is_null());
  CHECK_FALSE(all.at("o").at("x").exists());
  CHECK(all.at("o").members()->front().first == "k");
  CHECK(refusal(all.at("n").members()) == "file, \"n\": must be an object, and is 5");
  constexpr std::string_view names[] = {"x", "y"};
  CHECK(*all.at("t").one_of(names) == 0);
  CHECK(refusal(all.at("n").one_of(names)) == "file, \"n\": must be one of \"x\", \"y\", and is 5");
  CHECK(render(all.at("o").check_keys({"a", "b"})) == "file, \"o\": unknown key \"k\"; allowed are: a, b");
  CHECK(render(all.at("t").is_not("a size", "say 3")) == "file, \"t\": \"x\" is not a size; say 3");
}
