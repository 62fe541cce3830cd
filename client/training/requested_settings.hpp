#pragma once

#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"

#include <string>
#include <vector>

namespace ringmaster::training {

/// The model's layers in their order: "linear 784x128, relu linear 128x10".
std::string layers_text(const training_job& job);

/// "8000 samples of synthetic digits, fingerprint 0123456789abcdef": of some samples all over the set.
std::string data_text(const data_set& x);

/// All that ranks in processes of their own must have alike, a phrase each: what a step's result follows from.
/// `deterministic`, `mirror`: as trainer_settings has them. Data are compared whole, by their digests, which may take
/// as long as to read them once; `held_out` may be null.
std::vector<std::string> requested_settings(const training_job& job, const data_set& data, bool deterministic,
                                            bool mirror, const data_set* held_out = nullptr);

/// data_set::digest in 16 hexadecimal digits.
std::string digest_text(const data_set& x);

} // namespace ringmaster::training
