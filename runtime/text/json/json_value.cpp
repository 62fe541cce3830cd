#include "runtime/text/json/json_value.hpp"

#include "messages/errc.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ringmaster {

namespace {

constexpr int levels_max = 64;

void append_utf8(std::string& text, uint32_t code) {
  auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80)
    return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    put(code < 0x10000 ? 0xe0 | code >> 12 : 0xf0 | code >> 18);
    if (code >= 0x10000)
      put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

/// Reads from left to right. Its functions return false where something is wrong, which is in `problem` then.
class json_reader {
public:
  explicit json_reader(std::string_view document) : document_(document) {}

  bool read_document(json_value& target) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf"; // some editors' first character
    if (document_.starts_with(byte_order_mark))
      at_ = byte_order_mark.size();
    if (!read_value(target))
      return false;
    skip_blanks();
    return at_ == document_.size() || wrong("the end");
  }

  caf::error problem;

private:
  bool refuse(size_t offset, const std::string& sentence) {
    problem = make_error(errc::invalid_argument, fmt::format("{}: {}", line_and_column(document_, offset), sentence));
    return false;
  }

  bool wrong(std::string_view allowed) {
    auto there = at_ == document_.size()         ? "the text ends"
                 : next() == '\n'                ? "the line ends"
                 : next() > ' ' && next() <= '~' ? fmt::format("there is '{}'", next())
                                                 : "there is something else";
    return refuse(at_, fmt::format("this is no JSON: there must be {}, and {}", allowed, there));
  }

  char next() const { return at_ < document_.size() ? document_[at_] : '\0'; }

  bool take(std::string_view word) {
    if (!document_.substr(at_).starts_with(word))
      return false;
    at_ += word.size();
    return true;
  }

  void skip_blanks() { at_ = std::min(document_.find_first_not_of(" \t\r\n", at_), document_.size()); }

  bool read_value(json_value& target) {
    skip_blanks();
    target.offset = at_;
    auto good = next() == '{' || next() == '[' ? read_entries(target)
                : next() == '"'                ? (target.what = json_value::type::text, read_text(target.text))
                                               : read_simple(target);
    target.end = at_;
    return good;
  }

  bool read_simple(json_value& target) {
    target.flag = take("true");
    if (target.flag || take("false")) {
      target.what = json_value::type::boolean;
      return true;
    }
    return take("null") || read_number(target);
  }

  bool read_entries(json_value& target) {
    if (++level_ > levels_max)
      return refuse(at_, fmt::format("there are more than {} levels of lists and objects", levels_max));
    auto is_object = next() == '{';
    auto last = is_object ? '}' : ']';
    target.what = is_object ? json_value::type::object : json_value::type::list;
    ++at_;
    for (skip_blanks(); next() != last || !target.entries.empty(); skip_blanks()) {
      if (is_object && !read_key(target))
        return false;
      if (!read_value(target.entries.emplace_back()))
        return false;
      skip_blanks();
      if (next() == last)
        break;
      if (!take(","))
        return wrong(is_object ? "',' or '}'" : "',' or ']'");
    }
    ++at_;
    --level_;
    return true;
  }

  bool read_key(json_value& target) {
    json_value::key key{{}, at_};
    if (next() != '"')
      return wrong("a name in double quotes");
    if (!read_text(key.name))
      return false;
    if (std::any_of(target.keys.begin(), target.keys.end(), [&](auto& x) { return x.name == key.name; }))
      return refuse(key.offset, fmt::format("the key \"{}\" is there twice", key.name));
    target.keys.push_back(std::move(key));
    skip_blanks();
    return take(":") || wrong("':'");
  }

  bool read_text(std::string& target) {
    for (++at_; next() != '"'; ++at_) {
      if (static_cast<unsigned char>(next()) < 0x20)
        return wrong("a character or a closing '\"' on the same line");
      if (next() != '\\') {
        target += next();
        continue;
      }
      ++at_;
      constexpr std::string_view escapes = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      if (auto known = escapes.find(next()); next() != '\0' && known != escapes.npos)
        target += meant[known];
      else if (next() != 'u' || !read_code(target))
        return problem ? false : wrong("one of \"\\/bfnrt or u and four hexadecimal digits");
    }
    ++at_;
    return true;
  }

  /// "uXXXX", or two of them for what is above 0xffff; ends at the last digit.
  bool read_code(std::string& target) {
    uint32_t code = 0, low = 0;
    if (!read_digits(code))
      return false;
    if (code >= 0xd800 && code < 0xdc00) {
      if (!document_.substr(at_ + 1).starts_with("\\u"))
        return refuse(at_, "the second half of a surrogate pair is missing");
      at_ += 2;
      if (!read_digits(low))
        return false;
      code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xdc00;
    }
    if (code >= 0xd800 && code < 0xe000)
      return refuse(at_, "half of a surrogate pair stands by itself");
    append_utf8(target, code);
    return true;
  }

  bool read_digits(uint32_t& target) {
    const auto four = document_.substr(std::min(at_ + 1, document_.size()), 4);
    auto [end, failure] = std::from_chars(four.data(), four.data() + four.size(), target, 16);
    auto good = four.size() == 4 && failure == std::errc{} && end == four.data() + 4;
    at_ += good ? 4 : 0;
    return good;
  }

  bool skip_digits() {
    auto before = at_;
    at_ = std::min(document_.find_first_not_of("0123456789", at_), document_.size());
    return at_ > before;
  }

  bool read_number(json_value& target) {
    auto begin = at_;
    take("-");
    if (!take("0") && !skip_digits())
      return at_ = begin, wrong("a value");
    if (take(".") && !skip_digits())
      return wrong("a digit");
    if (take("e") || take("E")) {
      if (!take("+"))
        take("-");
      if (!skip_digits())
        return wrong("a digit");
    }
    target.what = json_value::type::number;
    auto [end, failure] = std::from_chars(document_.data() + begin, document_.data() + at_, target.number);
    return failure == std::errc{} || refuse(begin, "this number is too large, or too near to 0");
  }

  std::string_view document_;
  size_t at_ = 0;
  int level_ = 0;
};

} // namespace

caf::expected<json_value> parse_json(std::string_view document) {
  if (const auto wrong = wide_encoding_problem(document))
    return make_error(errc::invalid_argument, "this is no JSON: " + render(wrong));
  if (!is_utf8(document))
    return make_error(errc::invalid_argument, "this is no JSON: the text is not UTF-8");
  json_value result;
  json_reader reader{document};
  if (!reader.read_document(result))
    return std::move(reader.problem);
  return result;
}

std::string json_text(std::string_view text) {
  std::string result{'"'};
  for (auto x : as_utf8(text)) {
    if (x == '"' || x == '\\')
      result += '\\';
    if (static_cast<unsigned char>(x) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(x));
    else
      result += x;
  }
  result += '"';
  return result;
}

std::string line_and_column(std::string_view document, size_t offset) {
  auto before = document.substr(0, offset);
  auto line = std::count(before.begin(), before.end(), '\n') + 1;
  auto last_line = before.substr(before.rfind('\n') + 1); // npos + 1 is 0
  auto column = std::count_if(last_line.begin(), last_line.end(), [](char x) { return (x & 0xc0) != 0x80; }) + 1;
  return fmt::format("line {}, column {}", line, column);
}

} // namespace ringmaster
