#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// What a training run has measured, step by step.
struct loss_curve {
  std::string title;
  std::string measure = "loss"; ///< What all of these are.
  std::vector<double> steps;    ///< The loss of each step, the first one is number `first`.
  uint64_t first = 0;
  struct held_out_point {
    uint64_t step = 0;
    double loss = 0;
  };
  std::vector<held_out_point> held_out;
  std::vector<uint64_t> given_up; ///< Steps that had to be begun again.
  struct yardstick {
    std::string name;
    double loss = 0;
  };
  std::optional<yardstick> beside{}; ///< What something simple comes to on what is held out.
};

/// The loss over the steps as SVG: each step's, joined, the mean of their latest fiftieth, what was held out as dots, a
/// line where a step was given up, and one across where there is a yardstick.
std::string picture_of(const loss_curve& x);

} // namespace ringmaster::training
