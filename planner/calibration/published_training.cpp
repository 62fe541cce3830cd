#include "planner/calibration/published_training.hpp"

#include "planner/calibration/calibration.hpp"
#include "runtime/invariants/ensure.hpp"

#include <cmath>

namespace ringmaster::training {

namespace {

constexpr double dense_outlier = 0.04, experts_outlier = 0.1;

} // namespace

double estimate_of(const published_training& x, std::span<const double> values) {
  auto on = with_pretraining_software(x.on, x.generation, values);
  if (x.ran)
    on = with_software(std::move(on), *x.ran, x.how.paired_part(), values);
  return estimate_iteration(x.trained, on, x.how).seconds;
}

std::vector<double> fit_pretraining_constants(std::span<const published_training> rows) {
  std::vector<double> start;
  for (auto& x : pretraining_constants())
    start.push_back(x.start);
  return pattern_search(start, [&](std::span<const double> values) {
    if (!are_parts(values))
      return HUGE_VAL;
    ensure(values.size() == pretraining_constants().size(), "each fitted constant has a value");
    double result = 0;
    for (auto& x : rows) {
      ensure(x.seconds > 0, "a published iteration took time");
      const auto z = std::log(estimate_of(x, values) / x.seconds)
                     / (x.trained.experts.count > 0 ? experts_outlier : dense_outlier);
      result += 2 * (std::sqrt(1 + z * z) - 1);
    }
    for (size_t i = 0; i < values.size(); ++i)
      result += pretraining_constants()[i].pull * std::pow(std::log(values[i] / pretraining_constants()[i].start), 2);
    return result;
  });
}

} // namespace ringmaster::training
