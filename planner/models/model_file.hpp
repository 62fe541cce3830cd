#pragma once

#include "planner/models/language_model.hpp"
#include "planner/models/model_reader.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// Options for reading a configuration file.
struct model_file_options {
  std::optional<uint32_t> sequence{};  ///< Positions of a sample.
  std::optional<std::string> family{}; ///< In place of its model_type.
};

/// From the text of a configuration file of Hugging Face's (config.json; the members are those of its transformers
/// library, releases 4 and 5), of a family in `model_families`, or of a model of several parts of which one, such as
/// "text_config", is one. Members that change nothing here are ignored. Samples have `sequence` positions, else those
/// that the model was made for, but sequence_of_files at most. Modules that predict further tokens
/// (num_nextn_predict_layers) are trained with it. Errors: invalid_argument, with line, column, the member and what it
/// must be; of a family that is not known, the one that has the same members; also for what a language_model cannot
/// say.
caf::expected<language_model> parse_model(std::string_view document, const model_file_options& opts = {});

/// A known model by its name, or one from such a file: what has a "/", ends in ".json" or is there is a file, and the
/// model's name. Errors: invalid_argument, naming the known ones; io_error; corrupt, with the file and parse_model's.
caf::expected<language_model> model_from(const std::string& name_or_file, const model_file_options& opts = {});

} // namespace ringmaster::training
