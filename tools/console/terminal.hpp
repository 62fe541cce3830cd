#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace ringmaster {

/// Colours text where a person reads it: on a terminal, and not when NO_COLOR is set to something (no-color.org).
class terminal {
public:
  explicit terminal(std::FILE* out);

  /// Whether somebody sits there, and not a file or another program.
  bool is_one() const noexcept { return is_one_; }

  std::string bold(std::string_view text) const { return painted("1", text); }
  std::string dim(std::string_view text) const { return painted("2", text); }
  std::string good(std::string_view text) const { return painted("32", text); }
  std::string warning(std::string_view text) const { return painted("33", text); }
  std::string bad(std::string_view text) const { return painted("31", text); }

  /// The text, cut to what is left of the line behind `indent` columns.
  std::string fitted(std::string text, size_t indent) const;

private:
  std::string painted(const char* code, std::string_view text) const;

  bool is_one_;
  bool colours_;
  size_t columns_ = 110; ///< Where there is no terminal to ask.
};

/// "1,048,576"
std::string with_commas(uint64_t x);

} // namespace ringmaster
