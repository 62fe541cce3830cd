#pragma once

#include <span>
#include <vector>

namespace ringmaster {

/// A measured value above 0, modelled as the sum of coefficient times feature over all features.
struct observation {
  std::vector<double> features; ///< Not negative.
  double value = 0;
};

struct linear_fit {
  std::vector<double> coefficients; ///< Not negative; 0 for a feature that is 0 in all observations.
  double residual = 0;              ///< Root mean square of the relative errors.
  double worst_ratio = 1;           ///< The maximum of prediction / value and value / prediction.
};

/// The sum of the products of coefficients and features.
double predict(std::span<const double> coefficients, std::span<const double> features);

/// Least squares of the relative errors, so that microseconds count as much as seconds, with coefficients that are not
/// negative. Method: coordinate descent. Each coefficient in turn takes its best value, at least 0, until none changes;
/// the problem is convex, so this is the optimum. All observations have the same number of features.
linear_fit fit_least_squares(std::span<const observation> observations);

} // namespace ringmaster
