#pragma once

#include "client/training/training_run.hpp"
#include "runtime/launchers/launched_process.hpp"
#include "tools/simulated_training/strategy_options.hpp"
#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"

#include <caf/expected.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The user's wishes for a model, which it may use.
struct model_wishes {
  std::vector<uint64_t> sizes{128}; ///< Of a perceptron's layers between input and output.
  uint64_t width = 64, blocks = 2;  ///< Of a transformer.
};

/// A model that can be trained, by its name.
struct trained_model {
  std::string_view name;
  std::string_view what; ///< In a line.
  /// Its layers for this data. Errors: invalid_argument for data that it cannot be trained with.
  caf::expected<training::model_layers> (*make)(const training::data_set& data, const model_wishes& wishes) = nullptr;
  bool of_text = false;     ///< Its data is a folder of texts, and it uses the wishes for a transformer.
  bool takes_sizes = false; ///< It uses the wishes for a perceptron.
};

/// The layers of a perceptron for this data. Errors: invalid_argument for texts.
caf::expected<std::vector<uint64_t>> perceptron_sizes(const training::data_set& data, const model_wishes& wishes);

/// In the order of the help text.
std::span<const trained_model> trained_models();
/// Null if there is none.
const trained_model* trained_model_of(std::string_view name);
/// Adds a model, or replaces the one of that name. A program with layers of its own calls this before it reads its
/// arguments.
void register_trained_model(const trained_model& added);

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
  std::string checkpoint, svg, trace, tensorboard;
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
