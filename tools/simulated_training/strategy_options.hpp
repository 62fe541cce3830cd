#pragma once

#include "tools/options/option_table.hpp"
#include "training/strategies/strategies.hpp"

#include <optional>
#include <string>

namespace ringmaster {

/// Which strategy, on how many ranks, and what it may choose: what is simulated and what is trained have it in common.
/// Must not move once it has been added to a table; may be copied then.
struct strategy_options {
  const training::known_strategy* which = nullptr;
  training::model trained{.layers = 32, .global_batch = 32};
  uint32_t ranks = 8;
  bool all = false;                    ///< "all" in place of a strategy's name.
  bool one_of_all = false;             ///< A line of the table.
  std::optional<uint64_t> micro_batch; ///< As given.
  std::optional<uint32_t> chunks;      ///< As given.
  std::optional<uint32_t> prefetch;    ///< As given.
  std::vector<std::string> left_out;   ///< Of these, what a line of the table is run without.
  std::string data_option = "--data";  ///< The option for the number of data-parallel ranks.

  void add_to(option_table& table, uint32_t ranks_max);
  /// Sets the strategy's defaults for options that are not given. Errors: invalid_argument for options that the
  /// strategy ignores.
  caf::error choose();
};

/// A line for each.
std::string known_strategies();

} // namespace ringmaster
