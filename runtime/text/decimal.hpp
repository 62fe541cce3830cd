#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace ringmaster {

/// The number that the whole text is, such as "7.5e9"; nothing where it is none.
inline std::optional<double> decimal_in(std::string_view text) {
  double x = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (problem != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return x;
}

} // namespace ringmaster
