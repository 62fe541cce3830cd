#pragma once

#include "runtime/schedule/collective.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <vector>

namespace ringmaster {

/// Which send meets which receive, over all ranks.
struct step_partners {
  static constexpr uint32_t none = UINT32_MAX;

  std::vector<std::vector<uint32_t>> of; ///< [rank][step]: the step of its peer; none for a copy or a reduce.
  caf::error fault;                      ///< invalid_argument: a message that no rank takes, or that no rank sends.
};

/// Matches sends and receives up to the first fault. The schedules have passed `check_schedule`. Takes time in
/// proportion to the steps and to the square of the ranks.
step_partners match_steps(const std::vector<schedule>& ranks);

} // namespace ringmaster
