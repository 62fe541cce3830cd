#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>

namespace ringmaster::test {

/// Sets $COLUMNS as long as it lives.
class set_columns {
public:
  explicit set_columns(const char* value) {
    if (const auto* old = std::getenv("COLUMNS"); old != nullptr)
      old_ = old;
    ::setenv("COLUMNS", value, 1);
  }
  set_columns(const set_columns&) = delete;
  ~set_columns() { old_ ? ::setenv("COLUMNS", old_->c_str(), 1) : ::unsetenv("COLUMNS"); }

private:
  std::optional<std::string> old_;
};

inline void check_width(const std::string& text, size_t columns) {
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    CHECK_MESSAGE(line.size() <= columns, line);
}

} // namespace ringmaster::test
