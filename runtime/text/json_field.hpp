#pragma once

#include <caf/expected.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster {

/// Objects keep the order of their keys. Sources that build or read one include <nlohmann/json.hpp>.
using json_value = nlohmann::ordered_json;

/// Parses one document, which may start with a byte order mark. Errors: invalid_argument, with line and column for a
/// syntax error, with the key for one that an object has twice; also for more than 64 levels of lists and objects.
caf::expected<json_value> parse_json(std::string_view document);

/// The value on one line. Whole numbers have no fraction, whatever their type: 2, not 2.0. Bytes of texts that are not
/// UTF-8 are replaced by U+FFFD; numbers that JSON does not have (infinities) are null.
std::string json_text(json_value x);

/// The number with at most this many significant digits, so that its JSON text is short.
double rounded(double x, int digits);

/// A field of a JSON document, or a missing one, with its path for errors: "rank 2, step 5, \"peer\"". Readers return
/// invalid_argument with the path, what is allowed, and what the document has there.
class json_field {
public:
  /// JSON numbers are doubles: whole numbers are exact up to here.
  static constexpr uint64_t exact_max = (uint64_t{1} << 53) - 1;

  /// `value` must outlive the field.
  json_field(std::string path, const json_value& value) : json_field(std::move(path), &value) {}

  json_field named(std::string path) const { return {std::move(path), value_}; }
  bool exists() const noexcept { return value_ != nullptr; }
  bool is_null() const noexcept;
  bool is_object() const noexcept;

  json_field at(std::string_view key) const;
  /// Refuses values that are not objects, and objects with other keys.
  caf::error check_keys(std::span<const std::string_view> allowed) const;
  caf::error check_keys(std::initializer_list<std::string_view> allowed) const {
    return check_keys(std::span{allowed.begin(), allowed.size()});
  }

  /// The path of each is "..., entry 3".
  caf::expected<std::vector<json_field>> list() const;
  caf::expected<std::string> text() const;
  /// The index of the text in `names`.
  caf::expected<size_t> one_of(std::span<const std::string_view> names) const;
  /// A whole number from 0 to `max`; `absent` if the field is missing.
  caf::expected<uint64_t> number(uint64_t max, std::optional<uint64_t> absent = std::nullopt) const;
  /// A number above 0, with or without a fraction.
  caf::expected<double> positive() const;
  /// A number from 0 to `max`, with or without a fraction.
  caf::expected<double> amount(double max) const;
  /// An object's keys and values, in the document's order.
  caf::expected<std::vector<std::pair<std::string, json_field>>> members() const;
  /// False if the field is missing.
  caf::expected<bool> flag() const;

  /// PATH: must be ALLOWED, and is VALUE.
  caf::error wrong(std::string_view allowed) const;
  /// For long advice: PATH: VALUE is not ALLOWED; ADVICE.
  caf::error is_not(std::string_view allowed, std::string_view advice) const;

private:
  json_field(std::string path, const json_value* value) : path_(std::move(path)), value_(value) {}

  std::string shown() const;

  std::string path_;
  const json_value* value_; ///< Null if the field is missing.
};

} // namespace ringmaster
