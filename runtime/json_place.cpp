#include "runtime/json_place.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>

namespace ringmaster {

namespace {

/// The value as JSON, cut where it is long.
std::string shown(const google::protobuf::Value& value) {
  constexpr size_t longest = 60; // characters
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(value, &text).ok())
    return "something else";
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

} // namespace

json_place json_place::named(std::string name) const {
  return {std::move(name), value_};
}

json_place json_place::at(std::string_view key) const {
  auto name = fmt::format("{}, \"{}\"", name_, key);
  if (value_ == nullptr || !value_->has_struct_value())
    return {std::move(name), nullptr};
  auto& fields = value_->struct_value().fields();
  auto found = fields.find(std::string{key});
  return {std::move(name), found == fields.end() ? nullptr : &found->second};
}

caf::error json_place::check_keys(std::span<const std::string_view> allowed) const {
  if (value_ == nullptr || !value_->has_struct_value())
    return wrong(fmt::format("an object with the keys {}", fmt::join(allowed, ", ")));
  for (auto& [key, ignored] : value_->struct_value().fields())
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end())
      return make_error(errc::invalid_argument,
                        fmt::format("{}: there is no key \"{}\" here; there are: {}", name_, key,
                                    fmt::join(allowed, ", ")));
  return caf::none;
}

caf::expected<std::vector<json_place>> json_place::list() const {
  if (value_ == nullptr || !value_->has_list_value())
    return wrong("a list");
  std::vector<json_place> result;
  auto& values = value_->list_value().values();
  for (int i = 0; i < values.size(); ++i)
    result.push_back({fmt::format("{}, entry {}", name_, i), &values[i]});
  return result;
}

caf::expected<std::string> json_place::text() const {
  if (value_ == nullptr || value_->kind_case() != google::protobuf::Value::kStringValue)
    return wrong("a text in quotes");
  return value_->string_value();
}

caf::expected<size_t> json_place::one_of(std::span<const std::string_view> names) const {
  if (value_ != nullptr)
    for (size_t i = 0; i < names.size(); ++i)
      if (value_->kind_case() == google::protobuf::Value::kStringValue && value_->string_value() == names[i])
        return i;
  return wrong(fmt::format("one of \"{}\"", fmt::join(names, "\", \"")));
}

caf::expected<uint64_t> json_place::number(uint64_t max, std::optional<uint64_t> absent) const {
  if (value_ == nullptr && absent)
    return *absent;
  auto is_number = value_ != nullptr && value_->kind_case() == google::protobuf::Value::kNumberValue;
  auto x = is_number ? value_->number_value() : -1;
  if (x < 0 || x != std::floor(x) || x > static_cast<double>(max))
    return wrong(fmt::format("a whole number from 0 to {}", max));
  return static_cast<uint64_t>(x);
}

caf::expected<bool> json_place::flag() const {
  if (value_ == nullptr)
    return false;
  if (value_->kind_case() != google::protobuf::Value::kBoolValue)
    return wrong("true or false");
  return value_->bool_value();
}

caf::error json_place::wrong(std::string_view allowed) const {
  return make_error(errc::invalid_argument,
                    fmt::format("{}: must be {}, and {}", name_, allowed,
                                value_ == nullptr ? "is missing" : "is " + shown(*value_)));
}

} // namespace ringmaster
