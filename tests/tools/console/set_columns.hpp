#pragma once

#include <cstdlib>
#include <optional>
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

} // namespace ringmaster::test
