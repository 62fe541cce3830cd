#pragma once

#include "tools/planning/plan_report.hpp"

#include <functional>
#include <vector>

namespace ringmaster {

/// The best plans, all simulated if that takes not too long, on up to four threads, and of the others those that in
/// closed form are faster than what is found; then by that, those that do not fit last, as many as were the best. Of
/// those that are not simulated, the closed form counts, times what simulated ones take of theirs. `watch` is told
/// which part is done, by one thread at a time, and leaves out what is left by answering false.
std::vector<confirmed_plan> confirm_plans(const training::plan_question& asked,
                                          const training::transformer_plans& found,
                                          const std::function<bool(double)>& watch);

} // namespace ringmaster
