#pragma once

#include "runtime/schedule/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// Which send meets which receive, over all ranks.
struct step_partners {
  static constexpr uint32_t none = UINT32_MAX;

  std::vector<std::vector<uint32_t>> of; ///< [rank][step]: the step of its peer; none for a copy or a reduce.
  std::string fault;                     ///< A message that nobody takes, or that nobody sends; empty: none.
};

/// The schedules have passed `check_schedule`. Takes time in proportion to the steps and to the square of the ranks.
step_partners match_steps(const std::vector<schedule>& ranks);

} // namespace ringmaster
