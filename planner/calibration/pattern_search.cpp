#include "planner/calibration/pattern_search.hpp"

#include "runtime/invariants/ensure.hpp"

#include <cmath>

namespace ringmaster::training {

namespace {

constexpr double first_step = 0.4, last_step = 1e-5;

} // namespace

std::vector<double> pattern_search(std::vector<double> start,
                                   const std::function<double(std::span<const double>)>& cost) {
  for (auto x : start)
    ensure(x > 0, "logarithms are of positive numbers");
  auto best = std::move(start);
  auto least = cost(best);
  auto improves = [&](const std::vector<double>& tried) {
    const auto x = cost(tried);
    if (!(x < least))
      return false;
    least = x;
    best = tried;
    return true;
  };
  for (double step = first_step; step > last_step;) {
    const auto before = best;
    for (size_t i = 0; i < best.size(); ++i)
      for (auto factor : {std::exp(step), std::exp(-step)}) {
        auto tried = best;
        tried[i] *= factor;
        improves(tried);
      }
    auto further = best; // once more where the whole sweep went
    auto go_on = [&] {
      for (size_t i = 0; i < best.size(); ++i)
        further[i] *= best[i] / before[i];
    };
    go_on();
    while (improves(further))
      go_on();
    step = best != before ? step : step / 2;
    ensure(best.size() == before.size(), "a sweep keeps all numbers");
  }
  return best;
}

} // namespace ringmaster::training
