#include "runtime/selection/least_squares.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringmaster {

namespace {

/// Features divided by the value, then each feature divided by its length, so that all have a similar scale.
struct scaled_problem {
  std::vector<std::vector<double>> rows;
  std::vector<double> lengths;
};

scaled_problem scaled(std::span<const observation> observations, size_t features) {
  scaled_problem result{{}, std::vector<double>(features, 0)};
  for (const auto& x : observations) {
    ensure(x.features.size() == features, "all observations have the same features");
    ensure(x.value > 0, "an observed value is above 0");
    auto& row = result.rows.emplace_back();
    for (size_t i = 0; i < features; ++i) {
      row.push_back(x.features[i] / x.value);
      result.lengths[i] += row[i] * row[i];
    }
  }
  for (size_t i = 0; i < features; ++i) {
    result.lengths[i] = std::sqrt(result.lengths[i]);
    if (result.lengths[i] > 0)
      for (auto& row : result.rows)
        row[i] /= result.lengths[i];
  }
  return result;
}

} // namespace

double predict(std::span<const double> coefficients, std::span<const double> features) {
  ensure(coefficients.size() <= features.size(), "each coefficient has a feature");
  double sum = 0;
  for (size_t i = 0; i < coefficients.size(); ++i)
    sum += coefficients[i] * features[i];
  return sum;
}

linear_fit fit_least_squares(std::span<const observation> observations) {
  constexpr int passes_max = 100'000;
  constexpr double small_enough = 1e-12;
  if (observations.empty())
    return {};
  auto features = observations.front().features.size();
  auto problem = scaled(observations, features);
  std::vector<double> found(features, 0),
    errors(observations.size(), 1); // of each value relative to it: 1 before the first pass
  double moved = 1;
  for (int pass = 0; pass < passes_max && moved > small_enough; ++pass) {
    moved = 0;
    for (size_t i = 0; i < features; ++i) {
      if (problem.lengths[i] == 0)
        continue;
      double slope = 0;
      for (size_t k = 0; k < errors.size(); ++k)
        slope += problem.rows[k][i] * errors[k];
      auto change = std::max(found[i] + slope, 0.0) - found[i];
      found[i] += change;
      for (size_t k = 0; k < errors.size(); ++k)
        errors[k] -= problem.rows[k][i] * change;
      moved = std::max(moved, std::abs(change));
    }
  }
  linear_fit result;
  for (size_t i = 0; i < features; ++i)
    result.coefficients.push_back(problem.lengths[i] > 0 ? found[i] / problem.lengths[i] : 0);
  for (auto error : errors) {
    result.residual += error * error / static_cast<double>(errors.size());
    auto ratio = 1 - error;
    result.worst_ratio = std::max(result.worst_ratio,
                                  ratio > 0 ? std::max(ratio, 1 / ratio) : std::numeric_limits<double>::infinity());
  }
  result.residual = std::sqrt(result.residual);
  return result;
}

} // namespace ringmaster
