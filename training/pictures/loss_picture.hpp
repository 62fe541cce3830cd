#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// The measurements of a training run, step by step.
struct loss_curve {
  std::string title;
  std::string measure = "loss"; ///< The name of the values.
  std::vector<double> steps;    ///< The loss of each step, from step `first`.
  uint64_t first = 0;
  struct held_out_point {
    uint64_t step = 0;
    double loss = 0;
  };
  std::vector<held_out_point> held_out;
  std::vector<uint64_t> given_up; ///< Steps that were restarted.
  struct yardstick {
    std::string name;
    double loss = 0;
  };
  std::optional<yardstick> beside{}; ///< The loss of a simple model on the held-out data.
};

/// The loss by step as SVG: a line through all steps, the running mean of the latest fiftieth, dots for held-out data,
/// a vertical line for each restarted step, and a horizontal one for the yardstick.
std::string picture_of(const loss_curve& x);

} // namespace ringmaster::training
