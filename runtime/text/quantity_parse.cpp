#include "runtime/text/quantity_parse.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace ringmaster {

namespace {

constexpr double largest = 4e18; ///< Fits into 62 bits.

/// The number that the text starts with, which must not be negative, and what follows it.
std::optional<std::pair<double, std::string_view>> split(std::string_view text) {
  double value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (problem != std::errc{} || !(value >= 0) || value > largest)
    return std::nullopt;
  auto unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.starts_with(' '))
    unit.remove_prefix(1);
  return std::pair{value, unit};
}

caf::error wrong(std::string_view text, std::string_view allowed) {
  return make_error(errc::invalid_argument, fmt::format("\"{}\" is not {}", text, allowed));
}

/// What stands before "B" or "bit": "", "K" or "Ki", "M" or "Mi", ...
std::optional<double> prefix_factor(std::string_view prefix) {
  if (prefix.empty())
    return 1;
  constexpr std::string_view letters = "KMGTP";
  auto letter = prefix[0] == 'k' ? 'K' : prefix[0];
  auto power = letters.find(letter);
  if (power == std::string_view::npos || (prefix.size() != 1 && prefix.substr(1) != "i"))
    return std::nullopt;
  return std::pow(prefix.size() == 2 ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

std::optional<double> byte_factor(std::string_view unit) {
  if (!unit.ends_with('B'))
    return unit.size() == 1 ? prefix_factor(fmt::format("{}i", unit)) : prefix_factor(unit);
  unit.remove_suffix(1);
  return prefix_factor(unit);
}

} // namespace

caf::expected<uint64_t> parse_whole(std::string_view text, uint64_t min, uint64_t max) {
  auto is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  auto digits = text.substr(is_hexadecimal ? 2 : 0);
  uint64_t value = 0;
  auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hexadecimal ? 16 : 10);
  if (problem != std::errc{} || end != digits.data() + digits.size() || value < min || value > max)
    return wrong(text, max == UINT64_MAX ? fmt::format("an integer from {}, such as {} or 0x{:x}", min, min + 2, min + 2)
                                         : fmt::format("an integer from {} to {}", min, max));
  return value;
}

caf::expected<uint64_t> parse_bytes(std::string_view text, uint64_t max) {
  auto parts = split(text);
  auto factor = parts ? byte_factor(parts->second) : std::nullopt;
  if (!factor || parts->first * *factor > largest)
    return wrong(text, "a number of bytes such as 4096, 64K, 1.5M, 1G (powers of 1024) or 1GB (powers of 1000)");
  auto bytes = parts->first * *factor;
  if (bytes != std::floor(bytes))
    return wrong(text, fmt::format("a whole number of bytes: it is {}", bytes));
  if (static_cast<uint64_t>(bytes) > max)
    return wrong(text, fmt::format("at most {}", bytes_text(max)));
  return static_cast<uint64_t>(bytes);
}

caf::expected<int64_t> parse_duration_ps(std::string_view text) {
  constexpr std::pair<std::string_view, double> units[]
    = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
  auto parts = split(text);
  if (parts && parts->first == 0 && parts->second.empty())
    return 0;
  for (auto& [unit, factor] : units)
    if (parts && parts->second == unit && parts->first * factor <= largest)
      return std::llround(parts->first * factor);
  return wrong(text, "a duration such as 5us, 200ns, 1.5ms or 2s, of 46 days at most");
}

caf::expected<double> parse_bandwidth(std::string_view text) {
  auto parts = split(text);
  if (parts && parts->first > 0 && parts->second.ends_with("/s")) {
    auto unit = parts->second.substr(0, parts->second.size() - 2);
    auto bits = unit.ends_with("bit");
    if (bits || unit.ends_with("B")) {
      auto factor = prefix_factor(unit.substr(0, unit.size() - (bits ? 3 : 1)));
      if (factor)
        return parts->first * *factor / (bits ? 8 : 1);
    }
  }
  return wrong(text, "a bandwidth such as 50GB/s, 12.5GiB/s or 400Gbit/s");
}

} // namespace ringmaster
