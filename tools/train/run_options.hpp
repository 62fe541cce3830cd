#pragma once

#include "client/training/training_run.hpp"
#include "runtime/launchers/launched_process.hpp"
#include "tools/simulated_training/strategy_options.hpp"
#include "tools/train/trained_models.hpp"

namespace ringmaster {

/// The options of `ringmaster train`. Must not move once it has been added to a table.
struct run_options : strategy_options {
  const trained_model* model = &trained_models().front();
  std::optional<std::vector<uint64_t>> sizes; ///< See model_wishes; not set: not given. The same for those below.
  std::optional<uint64_t> width, blocks;
  std::optional<uint32_t> window;  ///< Bytes of a text that a sample has.
  std::string data;                ///< A folder; empty: drawn digits.
  std::optional<uint32_t> samples; ///< Of generated digits, in an epoch.
  uint64_t epochs = 3;
  training::optimizer by{.kind = training::optimizer_kind::adam};
  uint64_t seed = 1234;
  bool deterministic = false, mirror = false, no_mirror = false, resume = false, json = false;
  std::string checkpoint, svg, trace;
  bool predicts = false;
  std::optional<uint64_t> kill_at;
  std::string precision_name = "float32";

  void add_to(option_table& table, const std::string& called);
  /// `started`: set by a launcher, with the number of ranks. Errors: invalid_argument.
  caf::error check(const std::optional<launched_process>& started);
  /// Reads the data and makes the model for it. Errors: those of the data and of the model; invalid_argument if the
  /// strategy cannot train it.
  caf::expected<training::run_settings> settings();

private:
  void add_model_to(option_table& table);
  void add_data_to(option_table& table);
  void add_learning_to(option_table& table);
  void add_results_to(option_table& table);
  caf::error check_ranks(const std::optional<launched_process>& started);
  /// Refuses options that have no effect with this model or data.
  caf::error unused_option() const;
  caf::expected<training::opened_data> open_data() const;
};

} // namespace ringmaster
