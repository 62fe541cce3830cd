#pragma once

#include <ringmaster/errors.hpp>

#include <string>
#include <vector>

namespace RINGMASTER_API {

/// A way to train a transformer on a GPU system.
struct training_plan {
  uint32_t tensor = 1;     ///< Ranks that share each layer.
  uint32_t context = 1;    ///< Ranks that share the positions of samples.
  uint32_t data = 1;       ///< Groups of ranks with other samples.
  uint32_t pipeline = 1;   ///< Stages.
  double iteration_s = 0;  ///< Estimated seconds of an iteration.
  double memory_bytes = 0; ///< Estimated, of each device.
  std::string text{};      ///< The whole plan for people.
};

/// Names of the known models and systems: "gpt3-175b", "h100".
std::vector<std::string> model_names();
std::vector<std::string> system_names(); ///< \copydoc model_names

/// The fastest plans that fit in memory, fastest first, `count` at most, by closed-form estimates
/// (docs/cost_models.md). `global_batch`: samples of an iteration. Errors: invalid_argument for an unknown model or
/// system and for 0 devices. Thread-safe; takes seconds for thousands of devices.
expected<std::vector<training_plan>> plan_training(const std::string& model, const std::string& system,
                                                   uint32_t devices, uint32_t global_batch, size_t count = 10);

} // namespace RINGMASTER_API
