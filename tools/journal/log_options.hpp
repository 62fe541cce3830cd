#pragma once

#include "runtime/journal/record_filter.hpp"
#include "tools/options/option_table.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ringmaster {

/// The options of `ringmaster log`.
struct log_options {
  std::filesystem::path dir;
  record_filter filter;
  bool audit = false; ///< `filter.kind` is "audit".
  bool json = false;
  bool relative = false; ///< Times since the first record shown.
  bool follow = false;
  bool samples = false;                    ///< Lists the samples of each training step instead of records.
  std::optional<operation_key> explained;  ///< Tells what happened to this operation instead of listing records.
  std::filesystem::path trace;             ///< Write a trace to this file; empty: list.
  std::string flight_recorder;             ///< Write dumps to this directory; empty: list.
  std::optional<uint64_t> trace_bytes_max; ///< None: `trace_bytes_default`.

  static constexpr uint64_t trace_bytes_default = uint64_t{64} << 20; ///< A size that ui.perfetto.dev opens quickly.

  void add_to(option_table& table);
  /// Applies `audit`. Errors: invalid_argument, with the options that exclude each other.
  caf::error check();
};

} // namespace ringmaster
