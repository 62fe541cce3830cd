#pragma once

#include "actors/training/trainer_settings.hpp"
#include "training/checkpoints/checkpoint_directory.hpp"
#include "training/data/data_set.hpp"

namespace ringmaster::training {

/// Each weight and optimizer state of the model, whole.
std::map<kept_part, std::vector<std::byte>> whole_parts(const training_job& job, const model_snapshot& x);

/// Writes the model as it is before a step: each parameter whole, as "layers.3.weight", and Adam's state of it, as
/// "adam.m.layers.3.weight" and "adam.v. ...", with metadata on the model and its data. The file does not depend on how
/// ranks shared the model: any strategy, on any number of ranks, can resume from it. Errors: those of
/// checkpoint_directory::save.
caf::error save_checkpoint(const checkpoint_directory& to, const training_job& job, const data_set& data,
                           const model_snapshot& x);

struct found_checkpoint {
  model_snapshot image;
  std::vector<std::string> notes; ///< Newer files that cannot be used, and why; settings that differ.
};

/// The newest checkpoint; nothing if there is none. Errors: those of checkpoint_directory::newest; corrupt, if it is of
/// another model, optimizer, precision, seed, global batch or data, with the difference. Metadata that a file lacks are
/// not compared.
caf::expected<std::optional<found_checkpoint>> load_checkpoint(const checkpoint_directory& from,
                                                               const training_job& job, const data_set& data);

} // namespace ringmaster::training
