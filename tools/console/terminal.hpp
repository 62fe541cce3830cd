#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace ringmaster {

/// Colours text on a terminal, unless NO_COLOR is set and not empty (no-color.org).
class terminal {
public:
  explicit terminal(std::FILE* out);

  /// Whether the stream is a terminal.
  bool is_one() const noexcept { return is_one_; }

  std::string bold(std::string_view text) const { return painted("1", text); }
  std::string dim(std::string_view text) const { return painted("2", text); }
  std::string good(std::string_view text) const { return painted("32", text); }
  std::string warning(std::string_view text) const { return painted("33", text); }
  std::string bad(std::string_view text) const { return painted("31", text); }

  /// The text, cut to the width of a line after `indent` columns.
  std::string fitted(std::string text, size_t indent) const;

private:
  std::string painted(const char* code, std::string_view text) const;

  bool is_one_;
  bool colours_;
  size_t columns_ = 100; ///< The width if the stream is not a terminal.
};

/// "1,048,576"
std::string with_commas(uint64_t x);

} // namespace ringmaster
