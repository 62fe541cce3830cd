#pragma once

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

} // namespace ringmaster
