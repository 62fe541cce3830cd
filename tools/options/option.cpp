#include "tools/options/option.hpp"

#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

option& option::says(std::string value_word, std::string purpose) {
  value_word_ = std::move(value_word);
  purpose_ = std::move(purpose);
  return *this;
}

option& option::says(std::string purpose) {
  purpose_ = std::move(purpose);
  return *this;
}

option& option::otherwise(std::string text) {
  otherwise_ = std::move(text);
  return *this;
}

option& option::also(std::string name) {
  names_.push_back(std::move(name));
  return *this;
}

option& option::needed() {
  needed_ = true;
  return *this;
}

option& option::many() {
  many_ = true;
  return *this;
}

option& option::offers(std::vector<std::string> words) {
  words_ = std::move(words);
  offer_ = offer::words;
  return *this;
}

option& option::offers_beside(std::string word, std::vector<std::string> words) {
  words_beside_[std::move(word)] = std::move(words);
  return *this;
}

option& option::offers_files() {
  offer_ = offer::file;
  return *this;
}

option& option::offers_directories() {
  offer_ = offer::directory;
  return *this;
}

std::string option::label() const {
  auto names = names_;
  std::stable_partition(names.begin(), names.end(), [](auto& x) { return !x.starts_with("--"); });
  auto result = fmt::format("{}", fmt::join(names, ", "));
  if (!value_word_.empty() && !flag_)
    result += (result.empty() ? "" : " ") + value_word_;
  return result + (many_ ? "..." : "");
}

std::string option::purpose() const {
  auto result = purpose_;
  constexpr std::string_view place = "{words}";
  if (auto at = result.find(place); at != result.npos)
    result.replace(at, place.size(), choice_text(words_));
  if (!otherwise_.empty() && !flag_)
    result += (result.empty() ? "(" : " (") + otherwise_ + ")";
  return result;
}

std::string option::usage() const {
  auto text = names_.empty() ? value_word_ : name() + " " + value_word_;
  if (many_)
    text += "...";
  return needed_ ? text : fmt::format("[{}]", text);
}

} // namespace ringmaster
