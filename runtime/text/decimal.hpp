#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace ringmaster {

/// The whole text as a number, such as "7.5e9"; none if it is not one.
inline std::optional<double> decimal_in(std::string_view text) {
  double x = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (problem != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return x;
}

} // namespace ringmaster
