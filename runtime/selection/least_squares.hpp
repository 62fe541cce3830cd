#pragma once

#include <span>
#include <vector>

namespace ringmaster {

/// A measured value, above 0, and what it is thought to be a sum of: coefficient times feature, over all features.
struct observation {
  std::vector<double> features; ///< None negative.
  double value = 0;
};

struct linear_fit {
  std::vector<double> coefficients; ///< None negative. 0, too, for a feature that is 0 throughout.
  double residual = 0;              ///< Root mean square of the relative errors.
  double worst_ratio = 1;           ///< The larger of prediction / value and value / prediction, at its worst.
};

/// The sum of the features, each by its coefficient.
double predict(std::span<const double> coefficients, std::span<const double> features);

/// Least squares of the relative errors: what takes microseconds counts as much as what takes seconds. Costs are not
/// negative, so the coefficients must not be either. Method: one coefficient after the other takes its best value, cut
/// off at 0, until they stay; the problem is convex, so that is the best there is. All observations have as many
/// features.
linear_fit fit_least_squares(std::span<const observation> observations);

} // namespace ringmaster
