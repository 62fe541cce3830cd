#include "runtime/selection/least_squares.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster;

TEST_CASE("least squares: finds the coefficients of generated values") {
  std::vector<observation> made;
  for (double rounds : {1, 3, 14})
    for (double bytes : {8.0, 65536.0, 1e6, 1e9})
      made.push_back({{1, rounds, bytes}, 20e-6 + rounds * 3e-6 + bytes / 5e9});
  auto fit = fit_least_squares(made);
  REQUIRE(fit.coefficients.size() == 3);
  CHECK(fit.coefficients[0] == doctest::Approx(20e-6));
  CHECK(fit.coefficients[1] == doctest::Approx(3e-6));
  CHECK(fit.coefficients[2] == doctest::Approx(1 / 5e9));
  CHECK(fit.residual < 1e-6);
  CHECK(fit.worst_ratio == doctest::Approx(1));
  CHECK(predict(fit.coefficients, made.back().features) == doctest::Approx(made.back().value));
}

TEST_CASE("least squares: no coefficient is negative, and that of an absent feature is 0") {
  auto fit = fit_least_squares(std::vector<observation>{{{1, 1, 0}, 10}, {{1, 2, 0}, 5}});
  CHECK(fit.coefficients[1] == 0); // the slope would be -5
  CHECK(fit.coefficients[2] == 0);
  CHECK(fit.coefficients[0] == doctest::Approx(6)); // least (c / 10 - 1)^2 + (c / 5 - 1)^2
  CHECK(fit.residual == doctest::Approx(std::sqrt((0.16 + 0.04) / 2)));
  CHECK(fit.worst_ratio == doctest::Approx(10.0 / 6));
  CHECK(fit_least_squares({}).coefficients.empty());
}

TEST_CASE("least squares: microseconds count as much as seconds") {
  auto fit = fit_least_squares(std::vector<observation>{{{1, 0}, 1e-6}, {{1, 1}, 1}});
  CHECK(fit.coefficients[0] == doctest::Approx(1e-6));
}
