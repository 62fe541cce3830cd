#include "planner/calibration/calibration.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster::training {

namespace {

constexpr double outlier_from = 0.05;
constexpr double newer_software_weight = 0.6; ///< Of all its rows together, against the others'.
constexpr double pull = 0.1;

double soft_l1(double x) {
  const auto z = x / outlier_from;
  return 2 * (std::sqrt(1 + z * z) - 1);
}

double gpu_system::*member_of(std::string_view name) {
  const auto at = std::ranges::find(system_constants(), name, &system_constant::name);
  ensure(at != system_constants().end(), "a calibrated constant is a constant of a system");
  return at->member;
}

/// The mean over the rows, each kind of software by its weight.
double misfit(std::span<const measured_iteration> rows, const gpu_system& on) {
  double sums[2]{}, counts[2]{};
  for (auto& x : rows) {
    ensure(x.seconds > 0, "a measured iteration took time");
    sums[x.older_software] += soft_l1(std::log(estimate_of(x, on) / x.seconds));
    ++counts[x.older_software];
  }
  double result = 0;
  if (counts[1] > 0)
    result += sums[1] / counts[1];
  if (counts[0] > 0)
    result += newer_software_weight * sums[0] / counts[0];
  return result;
}

} // namespace

std::span<const calibrated_constant> calibrated_constants() {
  static constexpr std::array<calibrated_constant, 8> all{{
    {.name = "matrix_efficiency", .start = 0.85},
    {.name = "kernel_s", .start = 20e-6},
    {.name = "logit_bytes", .start = 60},
    {.name = "launch_s", .start = 2.5e-3},
    {.name = "launch_tensor_s", .start = 80e-6},
    {.name = "launch_unfused_s", .start = 1e-3},
    {.name = "launch_ends_s", .start = 5e-3},
    {.name = "unhidden", .start = 0.3},
  }};
  return all;
}

double estimate_of(const measured_iteration& x, const gpu_system& on) {
  if (!x.older_software)
    return estimate_iteration(x.trained, on, x.how).seconds;
  auto older = on;
  older.launch_scale = 1;
  return estimate_iteration(x.trained, older, x.how).seconds;
}

deviation deviation_of(std::span<const double> relative) {
  deviation result{.count = relative.size()};
  std::vector<double> absolute;
  for (auto x : relative) {
    result.mean += x / static_cast<double>(relative.size());
    result.mean_absolute += std::abs(x) / static_cast<double>(relative.size());
    absolute.push_back(std::abs(x));
    if (std::abs(x) > std::abs(result.worst))
      result.worst = x;
  }
  std::ranges::sort(absolute);
  if (!absolute.empty())
    result.median_absolute = absolute[absolute.size() / 2];
  ensure(result.median_absolute <= std::abs(result.worst) && result.mean_absolute >= 0,
         "no deviation exceeds the worst");
  return result;
}

deviation deviation_of(std::span<const measured_iteration> rows, const gpu_system& on) {
  std::vector<double> relative;
  for (auto& x : rows)
    relative.push_back(estimate_of(x, on) / x.seconds - 1);
  return deviation_of(relative);
}

gpu_system calibrate(gpu_system others, std::span<const measured_iteration> rows) {
  std::vector<double> start;
  for (auto& x : calibrated_constants())
    start.push_back(x.start);
  auto with = [&](std::span<const double> values) {
    ensure(values.size() == calibrated_constants().size(), "each calibrated constant has a value");
    auto x = others;
    for (size_t i = 0; i < values.size(); ++i)
      x.*member_of(calibrated_constants()[i].name) = values[i];
    return x;
  };
  return with(pattern_search(start, [&](std::span<const double> values) {
    const auto x = with(values);
    if (x.matrix_efficiency > 1 || x.unhidden > 1)
      return HUGE_VAL;
    auto result = misfit(rows, x);
    for (size_t i = 0; i < values.size(); ++i)
      result += pull * std::pow(std::log(values[i] / start[i]), 2);
    return result;
  }));
}

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
