#pragma once

#include "planner/estimates/iteration_estimate.hpp"

#include <string>
#include <vector>

namespace ringmaster::training {

/// One of the parts that a whole consists of: "bubble", 0.12 s.
struct named_part {
  std::string name;
  double amount = 0;
  friend bool operator==(const named_part&, const named_part&) = default;
};
using named_parts = std::vector<named_part>;

/// Where an iteration's seconds go, without communication that other work hides. The parts add up to the iteration.
named_parts seconds_by_part(const iteration_estimate& x);
/// Communication that other work hides.
named_parts hidden_by_part(const iteration_estimate& x);
/// What a rank's memory is used for.
named_parts bytes_by_part(const memory_parts& x);

/// The same part of two plans, A and B.
struct part_difference {
  std::string name;
  double a = 0, b = 0;
};
/// All parts that are not 0 in both, the largest difference first.
std::vector<part_difference> differences(const named_parts& a, const named_parts& b);

} // namespace ringmaster::training
