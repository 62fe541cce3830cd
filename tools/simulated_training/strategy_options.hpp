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
  std::optional<uint64_t> micro_batch; ///< As told.
  std::optional<uint32_t> chunks;      ///< The same.
  std::optional<uint32_t> prefetch;    ///< The same.
  std::vector<std::string> left_out;   ///< Of these, what a line of the table is run without.
  std::string data_option = "--data";  ///< How the number of data-parallel ranks is told.

  void add_to(option_table& table, uint32_t ranks_max);
  /// The strategy's own choices where nobody has said which, for a model that it accepts. Errors: invalid_argument for
  /// options that it would not go by.
  caf::error choose();
};

/// A line for each.
std::string known_strategies();

} // namespace ringmaster
