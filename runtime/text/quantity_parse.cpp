#include "runtime/text/quantity_parse.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace ringmaster {

namespace {

constexpr double largest = 4e18; ///< Fits into 62 bits.

caf::error wrong(std::string_view text, std::string_view allowed) {
  return invalid(fmt::format("\"{}\" is not {}", text, allowed));
}

/// The number that the text starts with, which must not be negative, and what follows it: "5", "us" of "5 us".
template <class Number, class... Format>
std::optional<std::pair<Number, std::string_view>> split(std::string_view text, Format... format) {
  Number value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
  if (problem != std::errc{} || !(value >= 0))
    return std::nullopt;
  auto unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.starts_with(' '))
    unit.remove_prefix(1);
  return std::pair{value, unit};
}

std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
  auto parts = split<double>(text, std::chars_format::fixed);
  return parts && parts->first <= largest ? parts : std::nullopt;
}

/// "K" or "Ki", "M" or "Mi", ...: a power of 1000 or 1024.
std::optional<uint64_t> prefix_factor(std::string_view prefix, bool binary) {
  constexpr std::string_view letters = "KMGTP";
  auto power = prefix.size() == 1 ? letters.find(prefix == "k" ? 'K' : prefix[0]) : letters.npos;
  if (power == letters.npos)
    return std::nullopt;
  uint64_t result = 1;
  for (size_t i = 0; i <= power; ++i)
    result *= binary ? 1024 : 1000;
  return result;
}

/// "", "B", "K", "KiB", "KB", ... Case does not matter: "mb" is neither millibytes nor bits.
std::optional<uint64_t> byte_factor(std::string_view written) {
  std::string upper{written};
  std::ranges::transform(upper, upper.begin(), [](unsigned char x) { return static_cast<char>(std::toupper(x)); });
  std::string_view unit = upper;
  auto counts_bytes = unit.ends_with('B');
  unit.remove_suffix(counts_bytes);
  if (unit.empty())
    return 1;
  auto binary = unit.ends_with('I');
  return prefix_factor(unit.substr(0, unit.size() - binary), binary || !counts_bytes);
}

/// "GB/s", "GiB/s", "Gbit/s", "Gb/s", "Gbps": bytes a second.
std::optional<double> rate_factor(std::string_view unit) {
  struct ending {
    std::string_view text;
    double bytes;
  };
  constexpr std::array<ending, 5> endings{{{"bit/s", 0.125}, {"bps", 0.125}, {"b/s", 0.125}, {"B/s", 1}, {"Bps", 1}}};
  for (auto& x : endings)
    if (unit.ends_with(x.text)) {
      unit.remove_suffix(x.text.size());
      auto binary = unit.ends_with('i');
      auto factor = unit.empty() ? 1 : prefix_factor(unit.substr(0, unit.size() - binary), binary);
      return factor ? std::optional{static_cast<double>(*factor) * x.bytes} : std::nullopt;
    }
  return std::nullopt;
}

/// In picoseconds; "0" needs no unit.
std::optional<double> duration_of(std::string_view text, double limit_ps) {
  constexpr std::pair<std::string_view, double> units[] = {
    {"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"min", 60e12}, {"h", 3600e12}, {"d", 86400e12}};
  const auto parts = split_number(text);
  if (parts && parts->first == 0 && parts->second.empty())
    return 0;
  for (auto& [unit, factor] : units)
    if (parts && parts->second == unit && parts->first * factor <= limit_ps)
      return parts->first * factor;
  return std::nullopt;
}

} // namespace

std::optional<double> decimal_in(std::string_view text) {
  double x = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (problem != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return x;
}

caf::expected<uint64_t> parse_whole(std::string_view text, uint64_t min, uint64_t max) {
  auto is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  auto digits = text.substr(is_hexadecimal ? 2 : 0);
  uint64_t value = 0;
  auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hexadecimal ? 16 : 10);
  if (problem != std::errc{} || end != digits.data() + digits.size() || value < min || value > max)
    return wrong(text, max == UINT64_MAX && problem != std::errc::result_out_of_range
                         ? fmt::format("an integer from {}, such as {} or 0x{:x}", min, min + 2, min + 2)
                         : fmt::format("an integer from {} to {}", min, max));
  return value;
}

caf::expected<uint64_t> parse_bytes(std::string_view text, uint64_t max, uint64_t min) {
  auto parts = split<uint64_t>(text);
  auto factor = parts ? byte_factor(parts->second) : std::nullopt;
  if (!factor || parts->first > static_cast<uint64_t>(largest) / *factor)
    return wrong(text, "a whole number of bytes such as 4096, 64K or 64KiB (powers of 1024) or 64KB (powers of 1000)");
  if (parts->first * *factor > max)
    return wrong(text, fmt::format("at most {}", bytes_text(max)));
  if (parts->first * *factor < min)
    return wrong(text, fmt::format("at least {}", bytes_text(min)));
  return parts->first * *factor;
}

caf::expected<int64_t> parse_duration_ps(std::string_view text) {
  const auto ps = duration_of(text, largest);
  return ps ? caf::expected<int64_t>{std::llround(*ps)}
            : wrong(text, "a duration such as 5us, 200ns, 1.5ms, 2s or 2min, of 46 days at most");
}

caf::expected<double> parse_duration_s(std::string_view text) {
  constexpr double millennium_ps = 365'250 * 86400e12;
  const auto ps = duration_of(text, millennium_ps);
  return ps ? caf::expected<double>{*ps / 1e12}
            : wrong(text, "a duration such as 500ms, 30s, 5min, 1.5h, 2d or 50000h, of 1000 years at most");
}

caf::expected<double> parse_bandwidth(std::string_view text) {
  auto parts = split_number(text);
  auto factor = parts && parts->first > 0 ? rate_factor(parts->second) : std::nullopt;
  if (!factor)
    return wrong(text, "a bandwidth such as 50GB/s, 12.5GiB/s, 400Gbit/s or 400Gbps");
  return parts->first * *factor;
}

caf::expected<double> parse_operation_rate(std::string_view text) {
  auto parts = split_number(text);
  for (std::string_view ending : {"FLOP/s", "FLOPS"})
    if (parts && parts->first > 0 && parts->second.ends_with(ending)) {
      const auto prefix = parts->second.substr(0, parts->second.size() - ending.size());
      if (auto factor = prefix.empty() ? 1 : prefix_factor(prefix, false))
        return parts->first * static_cast<double>(*factor);
    }
  return wrong(text, "a rate such as 989TFLOP/s, 989 TFLOPS or 2.25PFLOP/s");
}

} // namespace ringmaster
