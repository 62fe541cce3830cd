#include "planner/failures/played_runs.hpp"

#include "planner/failures/failure_simulation.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

void add(run_spread& to, double x, bool first, uint32_t runs) {
  to.mean += x / runs;
  to.least = first ? x : std::min(to.least, x);
  to.most = first ? x : std::max(to.most, x);
}

} // namespace

caf::expected<played_runs> play_runs(const failure_question& asked, recovery how, double interval_s, uint32_t runs,
                                     double life_shape) {
  if (auto problem = check_playable(asked, interval_s, life_shape, runs))
    return problem;
  ensure(runs > 0, "at least one run is played");
  played_runs result;
  for (uint64_t seed = 1; seed <= runs; ++seed) {
    auto x = simulate_failures(asked, how, interval_s, seed, life_shape);
    if (!x)
      return std::move(x.error());
    const auto first = seed == 1;
    add(result.effective, x->kept_s / asked.run_s, first, runs);
    add(result.goodput, x->work_s / asked.run_s, first, runs);
    add(result.waiting, x->waiting_s / asked.run_s, first, runs);
    add(result.smaller, x->smaller_s / asked.run_s, first, runs);
    add(result.interruptions, static_cast<double>(x->interruptions), first, runs);
  }
  for (auto* each : {&result.effective, &result.goodput, &result.waiting, &result.smaller})
    ensure(each->least <= each->most, "the least is at most the most");
  return result;
}

} // namespace ringmaster::training
