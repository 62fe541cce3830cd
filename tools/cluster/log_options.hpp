#pragma once

#include "runtime/journal/record_filter.hpp"

#include <caf/expected.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// What `ringmaster log` is asked to do.
struct log_options {
  std::filesystem::path dir;
  record_filter filter;
  bool json = false;
  bool relative = false; ///< Times since the first record shown.
  bool follow = false;
  std::filesystem::path trace; ///< Write a trace to this file; empty: list.
  bool help = false;
};

/// Errors: invalid_argument, naming the option, the value and what is allowed.
caf::expected<log_options> parse_log_options(std::span<const std::string> args);

/// What --help says.
extern const std::string_view log_usage;

} // namespace ringmaster
