#pragma once

#include "runtime/training/computed/training_job.hpp"
#include "runtime/training/data/data_set.hpp"

#include <string>
#include <vector>

namespace ringmaster::training {

/// The model's layers in their order: "linear 784x128, relu linear 128x10".
std::string layers_text(const training_job& job);

/// "8000 samples of synthetic digits, fingerprint 0123456789abcdef": of some samples all over the set.
std::string data_text(const data_set& x);

/// All that ranks in processes of their own must have alike, a phrase each: what a step's result follows from.
/// `deterministic`, `mirror`: as trainer_settings has them.
std::vector<std::string> told_settings(const training_job& job, const data_set& data, bool deterministic, bool mirror);

} // namespace ringmaster::training
