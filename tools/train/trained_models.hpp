#pragma once

#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"

#include <caf/expected.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// What somebody has said of a model, for one of them to take.
struct model_wishes {
  std::vector<uint64_t> sizes{128}; ///< Of a perceptron's layers between input and output.
  uint64_t width = 64, blocks = 2;  ///< Of a transformer.
};

/// A model that can be trained, by its name.
struct trained_model {
  std::string_view name;
  std::string_view what; ///< In a line.
  /// Its layers for such data. Errors: invalid_argument for data that it does not take.
  caf::expected<training::model_layers> (*make)(const training::data_set& data, const model_wishes& wishes) = nullptr;
  bool of_text = false;     ///< Its data is a folder of texts, and it goes by the wishes of a transformer.
  bool takes_sizes = false; ///< It goes by those of a perceptron.
};

/// Of a perceptron for such data, its inputs and outputs among them. Errors: invalid_argument for texts.
caf::expected<std::vector<uint64_t>> perceptron_sizes(const training::data_set& data, const model_wishes& wishes);

/// In the order in which they are listed to people.
std::span<const trained_model> trained_models();
/// Null where there is none.
const trained_model* trained_model_of(std::string_view name);
/// Adds one, in place of one of that name, for a program that has layers of its own: before it reads its arguments.
void register_trained_model(const trained_model& added);

} // namespace ringmaster
