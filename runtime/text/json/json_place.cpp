#include "runtime/text/json/json_place.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace ringmaster {

/// The value as it is written, cut where it is long.
std::string json_place::shown() const {
  constexpr size_t longest = 60; // characters
  auto text = document_.substr(value_->offset, value_->end - value_->offset);
  auto cut = std::min({text.find('\n'), text.size(), longest});
  return std::string{text.substr(0, cut)} + (cut < text.size() ? "..." : "");
}

caf::error json_place::refused_at(size_t offset, std::string_view sentence) const {
  return make_error(errc::invalid_argument, fmt::format("{}: {}", line_and_column(document_, offset), sentence));
}

json_place json_place::named(std::string name) const {
  return {std::move(name), document_, value_, offset_};
}

json_place json_place::at(std::string_view key) const {
  auto name = fmt::format("{}, \"{}\"", name_, key);
  if (is(json_value::type::object))
    for (size_t i = 0; i < value_->keys.size(); ++i)
      if (value_->keys[i].name == key)
        return {std::move(name), document_, value_->entries[i]};
  return {std::move(name), document_, nullptr, offset_};
}

caf::error json_place::check_keys(std::span<const std::string_view> allowed) const {
  if (!is(json_value::type::object))
    return wrong(fmt::format("an object with the keys {}", fmt::join(allowed, ", ")));
  for (auto& key : value_->keys)
    if (std::find(allowed.begin(), allowed.end(), key.name) == allowed.end())
      return refused_at(key.offset, fmt::format("{}: there is no key \"{}\" here; there are: {}", name_, key.name,
                                                fmt::join(allowed, ", ")));
  return caf::none;
}

caf::expected<std::vector<json_place>> json_place::list() const {
  if (!is(json_value::type::list))
    return wrong("a list");
  std::vector<json_place> result;
  for (auto& entry : value_->entries)
    result.push_back({fmt::format("{}, entry {}", name_, result.size()), document_, entry});
  return result;
}

caf::expected<std::string> json_place::text() const {
  if (!is(json_value::type::text))
    return wrong("a text in quotes");
  return value_->text;
}

caf::expected<size_t> json_place::one_of(std::span<const std::string_view> names) const {
  if (is(json_value::type::text))
    for (size_t i = 0; i < names.size(); ++i)
      if (value_->text == names[i])
        return i;
  return wrong(fmt::format("one of \"{}\"", fmt::join(names, "\", \"")));
}

caf::expected<uint64_t> json_place::number(uint64_t max, std::optional<uint64_t> absent) const {
  if (value_ == nullptr && absent)
    return *absent;
  auto x = is(json_value::type::number) ? value_->number : -1;
  if (x < 0 || x != std::floor(x) || x > static_cast<double>(max))
    return wrong(fmt::format("a whole number from 0 to {}", max));
  return static_cast<uint64_t>(x);
}

caf::expected<double> json_place::positive() const {
  if (!is(json_value::type::number) || !(value_->number > 0))
    return wrong("a number above 0");
  return value_->number;
}

caf::expected<double> json_place::amount(double max) const {
  if (!is(json_value::type::number) || !(value_->number >= 0) || value_->number > max)
    return wrong(fmt::format("a number from 0 to {:g}", max));
  return value_->number;
}

caf::expected<std::vector<std::pair<std::string, json_place>>> json_place::members() const {
  if (!is(json_value::type::object))
    return wrong("an object");
  std::vector<std::pair<std::string, json_place>> result;
  for (auto& key : value_->keys)
    result.emplace_back(key.name, at(key.name));
  return result;
}

caf::expected<bool> json_place::flag() const {
  if (value_ == nullptr)
    return false;
  if (!is(json_value::type::boolean))
    return wrong("true or false");
  return value_->flag;
}

caf::error json_place::wrong(std::string_view allowed) const {
  return refused(fmt::format("{}: must be {}, and {}", name_, allowed,
                             value_ == nullptr ? "is missing" : "is " + shown()));
}

caf::error json_place::is_not(std::string_view allowed, std::string_view advice) const {
  const auto found = value_ == nullptr ? std::string{"is missing"} : fmt::format("{} is not {}", shown(), allowed);
  return refused(fmt::format("{}: {}; {}", name_, found, advice));
}

} // namespace ringmaster
