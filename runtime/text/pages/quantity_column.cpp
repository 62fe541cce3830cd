#include "runtime/text/pages/quantity_column.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster {

namespace {

constexpr int digits = 4, decimals_max = 4, thousands_max = 6, thousandths_max = 4;

/// By powers of 1000, from 10^-12.
constexpr std::array<std::string_view, thousandths_max + 1 + thousands_max> prefixes{"p", "n", "u", "m", "", "k",
                                                                                     "M", "G", "T", "P", "E"};

std::string unit_text(std::string_view unit, std::string_view prefix) {
  if (unit == "s")
    return fmt::format("{}s", prefix);
  if (unit == "bytes")
    return prefix.empty() ? "bytes" : fmt::format("{}B", prefix);
  return prefix.empty() ? std::string{unit} : fmt::format("{} {}", prefix, unit);
}

/// Seconds are scaled down only, counts up only.
int thousands_of(double largest_value, std::string_view unit) {
  const auto wanted = largest_value > 0 ? static_cast<int>(std::floor(std::log10(largest_value) / 3)) : 0;
  return unit == "s" ? std::clamp(wanted, -thousandths_max, 0) : std::clamp(wanted, 0, thousands_max);
}

} // namespace

quantity_column::quantity_column(std::span<const double> values, std::string_view unit) {
  double largest = 0, smallest = 0;
  for (auto x : values) {
    largest = std::max(largest, x);
    if (x > 0 && (smallest == 0 || x < smallest))
      smallest = x;
  }
  const auto thousands = thousands_of(largest, unit);
  ensure(thousands >= -thousandths_max && thousands <= thousands_max, "there is a prefix for the unit");
  scale_ = std::pow(1000.0, thousands);
  unit_ = unit_text(unit, prefixes[static_cast<size_t>(thousands + thousandths_max)]);
  const bool in_whole = thousands == 0 && unit != "s" && unit != "units"; // elements are whole
  if (smallest > 0 && !in_whole)
    decimals_ = std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(smallest / scale_))), 0, decimals_max);
}

std::string quantity_column::text(double value) const {
  return fmt::format("{:.{}f}", value / scale_, decimals_);
}

std::string quantity_text(double value, std::string_view unit) {
  const quantity_column alone{std::span{&value, 1}, unit};
  return fmt::format("{} {}", alone.text(value), alone.unit());
}

} // namespace ringmaster
