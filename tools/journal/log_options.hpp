#pragma once

#include "runtime/journal/record_filter.hpp"
#include "tools/options/option_table.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ringmaster {

/// What `ringmaster log` is asked to do.
struct log_options {
  std::filesystem::path dir;
  record_filter filter;
  bool json = false;
  bool relative = false; ///< Times since the first record shown.
  bool follow = false;
  bool samples = false;                    ///< What each step of training took, in place of the records.
  std::filesystem::path trace;             ///< Write a trace to this file; empty: list.
  std::optional<uint64_t> trace_bytes_max; ///< None: `trace_bytes_default`.

  static constexpr uint64_t trace_bytes_default = uint64_t{64} << 20; ///< What ui.perfetto.dev opens with ease.

  void add_to(option_table& table);
  /// Errors: invalid_argument, naming the options that do not go together.
  caf::error check() const;
};

} // namespace ringmaster
