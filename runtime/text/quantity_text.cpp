#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace ringmaster {
namespace {

// Three digits, without zeros at the end.
std::string number(double value) {
  auto text = fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
  }
  return text;
}

} // namespace

std::string bytes_text(uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit)
    value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{} {}", number(value), units[unit]);
}

std::string size_text(uint64_t bytes) {
  constexpr std::array units{"", "K", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < units.size(); ++unit)
    bytes /= 1024;
  return fmt::format("{}{}", bytes, units[unit]);
}

std::string duration_text(uint64_t ns) {
  if (ns < 1000)
    return fmt::format("{} ns", ns);
  auto value = static_cast<double>(ns);
  if (ns < 1'000'000)
    return number(value / 1e3) + " us";
  return ns < 1'000'000'000 ? number(value / 1e6) + " ms" : number(value / 1e9) + " s";
}

std::string duration_text(std::chrono::nanoseconds x) {
  return duration_text(static_cast<uint64_t>(x.count()));
}

std::string long_duration_text(double s) {
  if (s < 1)
    return number(s * 1e3) + " ms";
  if (s < 60)
    return number(s) + " s";
  if (s < 3600)
    return number(s / 60) + " min";
  return s < 2 * 86400 ? number(s / 3600) + " h" : number(s / 86400) + " d";
}

std::string count_text(uint64_t n) {
  constexpr std::array units{"", " k", " M", " G", " T", " P", " E"};
  auto value = static_cast<double>(n);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit)
    value /= 1000;
  return number(value) + units[unit];
}

std::string counted(uint64_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

} // namespace ringmaster
