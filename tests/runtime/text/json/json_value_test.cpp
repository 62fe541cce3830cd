#include "runtime/text/json/json_value.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

std::string refusal(std::string_view document) {
  auto read = parse_json(document);
  REQUIRE(!read);
  CHECK(code_of(read.error()) == errc::invalid_argument);
  return render(read.error());
}

} // namespace

TEST_CASE("json value: every type is read, and knows where it stands") {
  constexpr std::string_view document = " {\"a\": [1, -2.5e1, true, false, null],\n  \"b\": {}, \"c\": [ ]}\n";
  auto read = parse_json(document);
  REQUIRE(read);
  CHECK(read->what == json_value::type::object);
  REQUIRE(read->keys.size() == 3);
  CHECK(read->keys[1].name == "b");
  const auto& list = read->entries[0];
  REQUIRE(list.entries.size() == 5);
  CHECK(list.entries[0].number == 1);
  CHECK(list.entries[1].number == -25);
  CHECK(list.entries[2].flag);
  CHECK(list.entries[3].what == json_value::type::boolean);
  CHECK(!list.entries[3].flag);
  CHECK(list.entries[4].what == json_value::type::null);
  CHECK(document.substr(list.offset, list.end - list.offset) == "[1, -2.5e1, true, false, null]");
  CHECK(line_and_column(document, read->keys[1].offset) == "line 2, column 3");
  CHECK(read->entries[2].what == json_value::type::list);
  CHECK(read->entries[2].entries.empty());
}

TEST_CASE("json value: texts have escapes, and every character of Unicode") {
  auto text = [](std::string_view document) {
    auto read = parse_json(document);
    REQUIRE(read);
    CHECK(read->what == json_value::type::text);
    return read->text;
  };
  CHECK(text(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
  CHECK(text(R"("\u0041\u00e4\u20ac\ud83d\ude00")") == "A\u00e4\u20ac\U0001f600");
  CHECK(text("\"\u20ac\"") == "\u20ac");
  CHECK(refusal(R"("\x")")
        == "line 1, column 3: this is no JSON: there must be one of \"\\/bfnrt or u and four "
           "hexadecimal digits, and there is 'x'");
  CHECK(refusal(R"("\u12g4")").find("line 1, column 3: ") == 0);
  CHECK(refusal(R"("\ud83d")").find("the second half of a surrogate pair is missing") != std::string::npos);
  CHECK(refusal(R"("\ud83d\u0041")").find("half of a surrogate pair stands by itself") != std::string::npos);
  CHECK(refusal(R"("\ude00")").find("half of a surrogate pair stands by itself") != std::string::npos);
  CHECK(refusal("\"\xff\"") == "this is no JSON: the text is not UTF-8");
}

TEST_CASE("json value: a byte order mark is passed over, at the beginning alone") {
  CHECK(parse_json("\xef\xbb\xbf 3")->number == 3);
  CHECK(refusal("3 \xef\xbb\xbf").find("there must be the end") != std::string::npos);
}

TEST_CASE("json value: what is no JSON is refused where it stops to be") {
  CHECK(refusal("") == "line 1, column 1: this is no JSON: there must be a value, and the text ends");
  CHECK(refusal("{\"a\": 1,\n \"b\" 2}") == "line 2, column 6: this is no JSON: there must be ':', and there is '2'");
  CHECK(refusal("[1,\n2\n") == "line 3, column 1: this is no JSON: there must be ',' or ']', and the text ends");
  CHECK(refusal("[1, ]") == "line 1, column 5: this is no JSON: there must be a value, and there is ']'");
  CHECK(refusal("{\"a\": 1 'b'") == "line 1, column 9: this is no JSON: there must be ',' or '}', and there is '''");
  CHECK(refusal("{a: 1}")
        == "line 1, column 2: this is no JSON: there must be a name in double quotes, and there is 'a'");
  CHECK(refusal("[\"\u20ac\", x]") == "line 1, column 7: this is no JSON: there must be a value, and there is 'x'");
  CHECK(refusal("[] []") == "line 1, column 4: this is no JSON: there must be the end, and there is '['");
  CHECK(refusal("\"a\nb\"")
        == "line 1, column 3: this is no JSON: there must be a character or a closing '\"' on the "
           "same line, and the line ends");
  CHECK(refusal("{\"a\": 1, \"a\": 2}") == "line 1, column 10: the key \"a\" is there twice");
  for (auto number : {"01", "1.", ".5", "-", "+1", "1e", "1e+", "0x10", "nan", "inf"}) {
    CAPTURE(number);
    CHECK(refusal(number).find("this is no JSON") != std::string::npos);
  }
  CHECK(refusal("[1e999]") == "line 1, column 2: this number is too large, or too near to 0");
  CHECK(parse_json(std::string(64, '[') + std::string(64, ']')));
  CHECK(refusal(std::string(65, '[')) == "line 1, column 65: there are more than 64 levels of lists and objects");
}

TEST_CASE("json: a text is written as it is read") {
  const std::string text{"a \"b\" \\ c\n\x01 \xc3\xa9"};
  auto read = parse_json(json_text(text));
  REQUIRE(read.engaged());
  CHECK(read->text == text);
}

TEST_CASE("json value: UTF-16 is refused with a sentence") {
  CHECK(refusal(std::string_view{"\xff\xfe{\0}\0", 6}).find("this is no JSON: it is in UTF-16, and must be in UTF-8")
        != std::string::npos);
}
