#pragma once

#include "actors/training/trainer_settings.hpp"
#include "training/checkpoints/checkpoint_directory.hpp"
#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"

#include <string>
#include <vector>

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

/// The model's layers in their order: "linear 784x128, relu linear 128x10".
std::string layers_text(const training_job& job);

/// "8000 samples of synthetic digits, fingerprint 0123456789abcdef". The fingerprint is of a few samples.
std::string data_text(const data_set& x);

/// The settings on which the processes of all ranks must agree, a phrase each: a step's result follows from them.
/// `deterministic`, `mirror`: as in trainer_settings. Data are compared by their digests, which can take as long as
/// reading them once; `held_out` may be null.
std::vector<std::string> requested_settings(const training_job& job, const data_set& data, bool deterministic,
                                            bool mirror, const data_set* held_out = nullptr);

/// data_set::digest in 16 hexadecimal digits.
std::string digest_text(const data_set& x);

} // namespace ringmaster::training
