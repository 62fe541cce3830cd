#pragma once

#include "actors/training/trainer_settings.hpp"
#include "training/checkpoints/checkpoint_directory.hpp"
#include "training/data/data_set.hpp"

namespace ringmaster::training {

/// Each weight and optimizer state of the model, whole.
std::map<kept_part, std::vector<std::byte>> whole_parts(const training_job& job, const model_snapshot& x);

/// Writes the model as it is before a step: each parameter whole, "layers.3.weight", and what Adam keeps for it,
/// "adam.m.layers.3.weight" and "adam.v. ...", and beside them what it is, and of which data. How it was cut among
/// ranks is not in it: any strategy, on any number of ranks, goes on from it. Errors: those of
/// checkpoint_directory::save.
caf::error save_checkpoint(const checkpoint_directory& to, const training_job& job, const data_set& data,
                           const model_snapshot& x);

struct found_checkpoint {
  model_snapshot image;
  std::vector<std::string> notes; ///< Newer ones that cannot be used, and why; what this run has chosen otherwise.
};

/// The newest one; nothing where there is none. Errors: those of checkpoint_directory::newest; corrupt, where it is of
/// another model, optimizer, precision, seed, global batch or data, saying which. What a file does not say is not
/// compared.
caf::expected<std::optional<found_checkpoint>> load_checkpoint(const checkpoint_directory& from,
                                                               const training_job& job, const data_set& data);

} // namespace ringmaster::training
