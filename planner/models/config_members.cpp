#include "planner/models/config_members.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

uint32_t config_members::size(std::string_view key, const allowed& x) {
  if (!has(key) && x.absent)
    return *x.absent;
  auto read = object_.at(key).number(x.most);
  if (read && *read >= x.least)
    return static_cast<uint32_t>(*read);
  refuse(key, fmt::format("a whole number from {} to {}", x.least, x.most));
  return x.least;
}

bool config_members::says(std::string_view key, std::string_view text) const {
  const auto read = object_.at(key).text();
  return read && *read == text;
}

std::string_view config_members::first_of(std::span<const std::string_view> keys) const {
  for (auto key : keys)
    if (has(key))
      return key;
  return keys.front();
}

bool config_members::flag(std::string_view key, bool absent) {
  const bool of_part = has(key),
             of_all = !of_part && around_ && around_->at(key).exists() && !around_->at(key).is_null();
  if (!of_part && !of_all)
    return absent;
  auto read = (of_part ? object_ : *around_).at(key).flag();
  if (read)
    return *read;
  keep(std::move(read.error()));
  return absent;
}

std::vector<json_field> config_members::list(std::string_view key) {
  if (!has(key))
    return {};
  auto read = object_.at(key).list();
  if (read)
    return std::move(*read);
  keep(std::move(read.error()));
  return {};
}

void config_members::must_be(std::string_view key, bool usual) {
  if (flag(key, usual) != usual)
    refuse(key, fmt::format("{}: plans know no other models of this family", usual));
}

void config_members::must_be_one(std::string_view key) {
  if (size(key, {.least = 0, .absent = 1}) != 1)
    refuse(key, "1: plans know models whose layers all have experts, but for the first ones");
}

void config_members::refuse(std::string_view key, std::string_view must_be) {
  keep(object_.at(key).wrong(must_be));
}

void config_members::keep(caf::error problem) {
  if (!problem_)
    problem_ = std::move(problem);
}

} // namespace ringmaster::training
