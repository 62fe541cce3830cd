#pragma once

#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"

#include <string>
#include <vector>

namespace ringmaster::training {

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
