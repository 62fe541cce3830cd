#pragma once

#include "runtime/text/json_field.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// The members of a model's configuration file, read one by one. The first error is kept, and a wrong member is
/// replaced by a harmless value. A member that is null counts as missing.
class config_members {
public:
  struct allowed {
    uint32_t most = 1 << 20, least = 1;
    std::optional<uint32_t> absent{}; ///< Default; nothing: the member is required.
  };

  /// The file's object, whose document must stay; or that of a part, and the one around it, which may have its flags.
  explicit config_members(json_field object) : object_(std::move(object)) {}
  config_members(json_field object, json_field around) : object_(std::move(object)), around_(std::move(around)) {}

  bool has(std::string_view key) const { return object_.at(key).exists() && !object_.at(key).is_null(); }
  bool is_null(std::string_view key) const { return object_.at(key).is_null(); }
  /// Whether it is this text.
  bool says(std::string_view key, std::string_view text) const;
  /// The first of several names that the file has, else the first.
  std::string_view first_of(std::span<const std::string_view> keys) const;
  uint32_t size(std::string_view key, const allowed& x);
  uint32_t size(std::string_view key) { return size(key, allowed{}); }
  bool flag(std::string_view key, bool absent);
  /// Empty if it is missing.
  std::vector<json_field> list(std::string_view key);

  /// Refuses other values, which a language_model cannot express.
  void must_be(std::string_view key, bool usual);
  void must_be_one(std::string_view key);

  /// The member is not what it must be: "a number that divides the 32 heads".
  void refuse(std::string_view key, std::string_view must_be);
  void keep(caf::error problem);
  const caf::error& problem() const { return problem_; }

private:
  json_field object_;
  std::optional<json_field> around_;
  caf::error problem_;
};

} // namespace ringmaster::training
