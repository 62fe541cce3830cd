#pragma once

#include "messages/errc.hpp"
#include "runtime/text/json/json_value.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster {

/// A value in a JSON document, or where one is missing, with the place's name for errors: "rank 2, step 5, \"peer\"".
/// Reads as what is wanted there; errors: invalid_argument, with line and column, the place, what is allowed, and what
/// stands there.
class json_place {
public:
  /// Whole numbers of JSON, which has doubles, are exact up to here.
  static constexpr uint64_t exact_max = (uint64_t{1} << 53) - 1;

  /// `document` and `value`, its value, must stay.
  json_place(std::string name, std::string_view document, const json_value& value)
    : json_place(std::move(name), document, &value, value.offset) {}

  json_place named(std::string name) const;
  bool is_there() const noexcept { return value_ != nullptr; }
  bool is_null() const noexcept { return is(json_value::type::null); }

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
  /// A number above 0, with or without a fraction.
  caf::expected<double> positive() const;
  /// A number from 0 to `max`, with or without a fraction.
  caf::expected<double> amount(double max) const;
  /// An object's values, each named by its key, in their order.
  caf::expected<std::vector<std::pair<std::string, json_place>>> members() const;
  /// False where nothing stands.
  caf::expected<bool> flag() const;

  caf::error wrong(std::string_view allowed) const;
  /// For advice of some length: what stands there comes first. "model_type": "own" is not a known family; ADVICE.
  caf::error is_not(std::string_view allowed, std::string_view advice) const;
  /// The sentence, with line and column before it.
  caf::error refused(std::string_view sentence) const { return refused_at(offset_, sentence); }

private:
  json_place(std::string name, std::string_view document, const json_value* value, size_t offset)
    : name_(std::move(name)), document_(document), value_(value), offset_(offset) {}

  bool is(json_value::type what) const { return value_ != nullptr && value_->what == what; }
  std::string shown() const;
  caf::error refused_at(size_t offset, std::string_view sentence) const;

  std::string name_;
  std::string_view document_;
  const json_value* value_; ///< Null where nothing stands.
  size_t offset_;           ///< Of the value, or of the object that lacks it.
};

} // namespace ringmaster
