#include "tools/puzzles/puzzle_check.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <exception>

namespace ringmaster {

namespace {

using namespace training;

constexpr uint64_t puzzle_operations_max = 1'000'000; ///< A puzzle takes hundreds.

/// Sees whether a strategy begins anything, and lets nothing go on.
class onlooker final : public executor {
public:
  bool seen() const { return seen_; }

  bool begin(pending&) override {
    seen_ = true;
    return false;
  }
  bool await(pending&) override { return false; }
  void fail(uint32_t, caf::error) override { seen_ = true; }
  bool failed() const override { return seen_; }
  void release(uint32_t, uint64_t) noexcept override {}

private:
  bool seen_ = false;
};

bool is_written(const puzzle& which, const strategy_function& program) {
  for (uint32_t i = 0; i < which.ranks; ++i) {
    onlooker by;
    rank self{by, i, which.ranks, which.trained};
    auto started = program(self);
    try {
      started.body().resume();
    } catch (const std::exception&) {
      return true; // which the simulator will say
    }
    if (by.seen())
      return true;
  }
  return false;
}

} // namespace

puzzle_result check(const puzzle& which, const strategy_function& program) {
  constexpr auto rounding = 1e-9; // of sums of tenths, in whatever order
  puzzle_result result;
  if (!is_written(which, program))
    return result;
  auto found = simulate(program, which.trained, which.ranks, puzzle_costs(), false, puzzle_operations_max);
  if (!found) {
    result.judged = verdict::wrong;
    result.error = std::move(found.error());
    return result;
  }
  ensure(found->peak_rank < found->ranks.size(), "the peak is at one of the ranks");
  result.time = found->time;
  result.peak_memory = found->ranks[found->peak_rank].peak_memory;
  result.slower = result.time > which.reference_time * (1 + rounding);
  result.larger = result.peak_memory > which.reference_memory;
  result.judged = result.slower || result.larger ? verdict::right : verdict::solved;
  return result;
}

puzzle_result check_stub(const puzzle& which) {
  return check(which, [&](rank& self) { return which.stub(self, which.trained); });
}

caf::expected<training_outcome> outcome_of_stub(const puzzle& which) {
  auto program = [&](rank& self) { return which.stub(self, which.trained); };
  if (!is_written(which, program))
    return make_error(errc::refused, fmt::format("{} is not written yet: there is nothing to show", which.stub_file()));
  return simulate(program, which.trained, which.ranks, puzzle_costs(), true, puzzle_operations_max);
}

puzzle_result check_solution(const puzzle& which) {
  return check(which, [&](rank& self) { return which.solution(self, which.trained); });
}

} // namespace ringmaster
