#pragma once

#include "messages/errc.hpp"

#include <caf/expected.hpp>
#include <google/protobuf/struct.pb.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// A value in a JSON document, or where one is missing, with the place's name for errors: "rank 2, step 5, \"peer\"".
/// Reads as what is wanted there; errors: invalid_argument, with the place, what is allowed, and what stands there.
class json_place {
public:
  /// Whole numbers of JSON, which has doubles, are exact up to here.
  static constexpr uint64_t exact_max = (uint64_t{1} << 53) - 1;

  /// `value` must stay.
  json_place(std::string name, const google::protobuf::Value& value) : name_(std::move(name)), value_(&value) {}

  json_place named(std::string name) const;
  bool is_there() const noexcept { return value_ != nullptr; }

  json_place at(std::string_view key) const;
  /// Refuses what is no object, and keys that are not among `allowed`.
  caf::error check_keys(std::span<const std::string_view> allowed) const;
  caf::error check_keys(std::initializer_list<std::string_view> allowed) const {
    return check_keys(std::span{allowed.begin(), allowed.size()});
  }

  /// Its entries are named "..., entry 3".
  caf::expected<std::vector<json_place>> list() const;
  caf::expected<std::string> text() const;
  /// Which of the names it is.
  caf::expected<size_t> one_of(std::span<const std::string_view> names) const;
  /// A whole number from 0 to `max`; `absent` where nothing stands.
  caf::expected<uint64_t> number(uint64_t max, std::optional<uint64_t> absent = std::nullopt) const;
  /// False where nothing stands.
  caf::expected<bool> flag() const;

  caf::error wrong(std::string_view allowed) const;

private:
  json_place(std::string name, const google::protobuf::Value* value) : name_(std::move(name)), value_(value) {}

  std::string name_;
  const google::protobuf::Value* value_; ///< Null where nothing stands.
};

} // namespace ringmaster
