#include "actors/configuration/ini_keys.hpp"

#include <cctype>

namespace ringmaster {

namespace {

/// What stands at the start of a statement.
bool is_key_char(char x) {
  return std::isalnum(static_cast<unsigned char>(x)) != 0 || x == '-' || x == '_';
}

/// Walks over an INI text, one statement after the other.
class scanner {
public:
  explicit scanner(std::string_view text) : rest_(text) {}

  std::vector<std::string> keys() {
    std::string section = "global";
    std::vector<std::string> result;
    while (skip_to_statement())
      if (rest_.front() == '[') {
        section = word_until(']');
      } else {
        result.push_back(section + "." + take_key());
        skip_value();
      }
    return result;
  }

private:
  bool skip_to_statement() {
    while (!rest_.empty() && rest_.front() != '[' && !is_key_char(rest_.front()))
      skip_one();
    return !rest_.empty();
  }

  /// A character, a comment or a quoted text.
  void skip_one() {
    auto first = rest_.front();
    rest_.remove_prefix(1);
    if (first == ';')
      skip_past('\n');
    else if (first == '"' || first == '\'')
      skip_past(first);
  }

  void skip_past(char last) {
    while (!rest_.empty()) {
      auto escaped = rest_.front() == '\\' && last != '\n';
      auto ends = rest_.front() == last;
      rest_.remove_prefix(escaped && rest_.size() > 1 ? 2 : 1);
      if (ends)
        return;
    }
  }

  /// The word between '[' and `last`, without blanks.
  std::string word_until(char last) {
    std::string word;
    rest_.remove_prefix(1);
    for (; !rest_.empty() && rest_.front() != last; rest_.remove_prefix(1))
      if (std::isspace(static_cast<unsigned char>(rest_.front())) == 0)
        word += rest_.front();
    if (!rest_.empty())
      rest_.remove_prefix(1);
    return word;
  }

  std::string take_key() {
    std::string key;
    for (; !rest_.empty() && is_key_char(rest_.front()); rest_.remove_prefix(1))
      key += rest_.front();
    return key;
  }

  /// Up to the end of the line that closes all brackets.
  void skip_value() {
    for (int depth = 0; !rest_.empty();) {
      auto next = rest_.front();
      depth += next == '[' || next == '{' ? 1 : next == ']' || next == '}' ? -1 : 0;
      if (depth == 0 && (next == '\n' || next == ';'))
        return;
      skip_one();
    }
  }

  std::string_view rest_;
};

} // namespace

std::vector<std::string> ini_keys(std::string_view text) {
  return scanner{text}.keys();
}

} // namespace ringmaster
