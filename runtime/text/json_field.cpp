#include "runtime/text/json_field.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

namespace ringmaster {

namespace {

constexpr size_t levels_max = 64;

/// "line 3, column 14": both from 1, the column in characters.
std::string line_and_column(std::string_view document, size_t offset) {
  const auto before = document.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto last_line = before.substr(before.rfind('\n') + 1); // npos + 1 is 0
  const auto column = std::ranges::count_if(last_line, [](char x) { return (x & 0xc0) != 0x80; }) + 1;
  return fmt::format("line {}, column {}", line, column);
}

/// The library's sentence, without its name for the exception and its own position, which counts bytes.
std::string sentence_of(const nlohmann::json::exception& x) {
  const std::string_view text{x.what()};
  const auto position = text.find("column ");
  const auto start = position == text.npos ? text.find("] ") : text.find(": ", position);
  return std::string{start == text.npos ? text : text.substr(start + 2)};
}

/// Watches the parser for what it accepts and we do not: keys that an object has twice, and very deep documents.
class document_check {
public:
  bool operator()(int, nlohmann::json::parse_event_t event, const json_value& value) {
    using event_t = nlohmann::json::parse_event_t;
    switch (event) {
      case event_t::object_start:
      case event_t::array_start:
        if (keys_.size() == levels_max && problem.empty())
          problem = fmt::format("there are more than {} levels of lists and objects", levels_max);
        keys_.emplace_back();
        break;
      case event_t::object_end:
      case event_t::array_end:
        ensure(!keys_.empty(), "a parser closes only lists and objects that it opened");
        keys_.pop_back();
        break;
      case event_t::key:
        ensure(!keys_.empty(), "a key is within an object");
        if (const auto& key = value.get_ref<const std::string&>(); !keys_.back().insert(key).second && problem.empty())
          problem = fmt::format("the key \"{}\" appears twice in an object", key);
        break;
      case event_t::value: break;
    }
    return problem.empty(); // the rest is not needed
  }

  std::string problem;

private:
  std::vector<std::set<std::string>> keys_; ///< Of each open object; empty for a list.
};

void drop_fractions_of_whole_numbers(json_value& x) {
  if (x.is_structured())
    for (auto& each : x)
      drop_fractions_of_whole_numbers(each);
  else if (const auto number = x.is_number_float() ? x.get<double>() : 0.5;
           number == std::floor(number) && std::abs(number) <= static_cast<double>(json_field::exact_max))
    x = static_cast<int64_t>(number);
}

} // namespace

caf::expected<json_value> parse_json(std::string_view document) {
  if (const auto problem = wide_encoding_problem(document))
    return invalid("this is not JSON: " + render(problem));
  document_check check;
  try {
    auto result = json_value::parse(document, std::ref(check));
    if (check.problem.empty())
      return result;
    return invalid(check.problem);
  } catch (const nlohmann::json::parse_error& x) {
    const auto where = line_and_column(document, x.byte == 0 ? 0 : x.byte - 1);
    return invalid(fmt::format("{}: this is not JSON: {}", where, sentence_of(x)));
  } catch (const nlohmann::json::exception& x) {
    return invalid("this is not JSON: " + sentence_of(x));
  }
}

std::string json_text(json_value x) {
  drop_fractions_of_whole_numbers(x);
  return x.dump(-1, ' ', false, json_value::error_handler_t::replace);
}

double rounded(double x, int digits) {
  return std::strtod(fmt::format("{:.{}g}", x, digits).c_str(), nullptr);
}

/// The value as JSON, cut if it is long.
std::string json_field::shown() const {
  constexpr size_t longest = 60; // bytes
  const auto text = json_text(*value_);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

bool json_field::is_null() const noexcept {
  return value_ != nullptr && value_->is_null();
}

bool json_field::is_object() const noexcept {
  return value_ != nullptr && value_->is_object();
}

json_field json_field::at(std::string_view key) const {
  const json_value* value = nullptr;
  if (is_object())
    if (const auto found = value_->find(std::string{key}); found != value_->end())
      value = &*found;
  return {fmt::format("{}, \"{}\"", path_, key), value};
}

caf::error json_field::check_keys(std::span<const std::string_view> allowed) const {
  if (!is_object())
    return wrong(fmt::format("an object with the keys {}", fmt::join(allowed, ", ")));
  for (const auto& each : value_->items())
    if (std::ranges::find(allowed, each.key()) == allowed.end())
      return invalid(fmt::format("{}: unknown key \"{}\"; allowed are: {}", path_, each.key(),
                                 fmt::join(allowed, ", ")));
  return caf::none;
}

caf::expected<std::vector<json_field>> json_field::list() const {
  if (value_ == nullptr || !value_->is_array())
    return wrong("a list");
  std::vector<json_field> result;
  result.reserve(value_->size());
  for (const auto& entry : *value_)
    result.push_back({fmt::format("{}, entry {}", path_, result.size()), entry});
  return result;
}

caf::expected<std::string> json_field::text() const {
  if (value_ == nullptr || !value_->is_string())
    return wrong("a text in quotes");
  return value_->get<std::string>();
}

caf::expected<size_t> json_field::one_of(std::span<const std::string_view> names) const {
  if (value_ != nullptr && value_->is_string())
    if (const auto at = std::ranges::find(names, value_->get_ref<const std::string&>()); at != names.end())
      return static_cast<size_t>(at - names.begin());
  return wrong(fmt::format("one of \"{}\"", fmt::join(names, "\", \"")));
}

caf::expected<uint64_t> json_field::number(uint64_t max, std::optional<uint64_t> absent) const {
  ensure(max <= exact_max, "a whole number in JSON is at most 2^53 - 1");
  if (value_ == nullptr && absent)
    return *absent;
  const auto x = value_ != nullptr && value_->is_number() ? value_->get<double>() : -1;
  if (x < 0 || x != std::floor(x) || x > static_cast<double>(max))
    return wrong(fmt::format("a whole number from 0 to {}", max));
  return static_cast<uint64_t>(x);
}

caf::expected<double> json_field::positive() const {
  if (value_ == nullptr || !value_->is_number() || !(value_->get<double>() > 0))
    return wrong("a number above 0");
  return value_->get<double>();
}

caf::expected<double> json_field::amount(double max) const {
  if (value_ == nullptr || !value_->is_number() || !(value_->get<double>() >= 0) || value_->get<double>() > max)
    return wrong(fmt::format("a number from 0 to {:g}", max));
  return value_->get<double>();
}

caf::expected<std::vector<std::pair<std::string, json_field>>> json_field::members() const {
  if (!is_object())
    return wrong("an object");
  std::vector<std::pair<std::string, json_field>> result;
  for (const auto& each : value_->items())
    result.emplace_back(each.key(), json_field{fmt::format("{}, \"{}\"", path_, each.key()), each.value()});
  return result;
}

caf::expected<bool> json_field::flag() const {
  if (value_ == nullptr)
    return false;
  if (!value_->is_boolean())
    return wrong("true or false");
  return value_->get<bool>();
}

caf::error json_field::wrong(std::string_view allowed) const {
  return invalid(fmt::format("{}: must be {}, and {}", path_, allowed,
                             value_ == nullptr ? "is missing" : "is " + shown()));
}

caf::error json_field::is_not(std::string_view allowed, std::string_view advice) const {
  const auto found = value_ == nullptr ? std::string{"is missing"} : fmt::format("{} is not {}", shown(), allowed);
  return invalid(fmt::format("{}: {}; {}", path_, found, advice));
}

} // namespace ringmaster
