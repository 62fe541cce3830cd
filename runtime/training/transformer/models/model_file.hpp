#pragma once

#include "runtime/training/transformer/models/language_model.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// The positions of a sample where nobody says how many, though a file's model can have more.
constexpr uint32_t sequence_of_files = 8192;

/// From the text of a configuration file of Hugging Face's (config.json; the members are those of its transformers
/// library, release 4): of model_type llama, mistral, qwen2, qwen3, qwen3_moe, mixtral, gpt_oss, deepseek_v3 or gpt2.
/// Members that change nothing here are ignored. Samples have `sequence` positions, else max_position_embeddings of
/// them, but sequence_of_files at most. Modules that predict further tokens (num_nextn_predict_layers) are
/// trained with it. Errors: invalid_argument, with line, column,
/// the member and what it must be; also for what a language_model cannot say, such as a window in every layer.
caf::expected<language_model> parse_model(std::string_view document, std::optional<uint32_t> sequence = std::nullopt);

/// A known model by its name, or one from such a file: what has a "/", ends in ".json" or is there is a file, and the
/// model's name. Errors: invalid_argument, naming the known ones; io_error; corrupt, with the file and parse_model's.
caf::expected<language_model> model_from(const std::string& name_or_file,
                                         std::optional<uint32_t> sequence = std::nullopt);

} // namespace ringmaster::training
