#include "runtime/training/transformer/calibration.hpp"

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
  return std::ranges::find(system_constants(), name, &system_constant::name)->member;
}

/// The mean over the rows, each kind of software by its weight.
double misfit(std::span<const measured_iteration> rows, const gpu_system& on) {
  double sums[2]{}, counts[2]{};
  for (auto& x : rows) {
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
  static constexpr std::array<calibrated_constant, 8> all{{{"matrix_efficiency", 0.85},
                                                           {"kernel_s", 20e-6},
                                                           {"logit_bytes", 60},
                                                           {"launch_s", 2.5e-3},
                                                           {"launch_tensor_s", 80e-6},
                                                           {"launch_unfused_s", 1e-3},
                                                           {"launch_ends_s", 5e-3},
                                                           {"unhidden", 0.3}}};
  return all;
}

double estimate_of(const measured_iteration& x, const gpu_system& on) {
  if (!x.older_software)
    return estimate_iteration(x.trained, on, x.how).seconds;
  auto older = on;
  older.launch_scale = 1;
  return estimate_iteration(x.trained, older, x.how).seconds;
}

deviation deviation_of(std::span<const measured_iteration> rows, const gpu_system& on) {
  deviation result{.count = rows.size()};
  std::vector<double> absolute;
  for (auto& x : rows) {
    const auto relative = estimate_of(x, on) / x.seconds - 1;
    result.mean += relative / static_cast<double>(rows.size());
    absolute.push_back(std::abs(relative));
    if (std::abs(relative) > std::abs(result.worst))
      result.worst = relative;
  }
  for (auto x : absolute)
    result.mean_absolute += x / static_cast<double>(rows.size());
  std::ranges::sort(absolute);
  if (!absolute.empty())
    result.median_absolute = absolute[absolute.size() / 2];
  return result;
}

gpu_system calibrate(gpu_system others, std::span<const measured_iteration> rows) {
  std::vector<double gpu_system::*> fitted;
  for (auto& x : calibrated_constants()) {
    fitted.push_back(member_of(x.name));
    others.*fitted.back() = x.start;
  }
  const auto start = others;
  auto cost = [&](const gpu_system& x) {
    auto result = misfit(rows, x);
    for (auto member : fitted)
      result += pull * std::pow(std::log(x.*member / (start.*member)), 2);
    return result;
  };
  auto best = start;
  auto least = cost(best);
  auto improves = [&](const gpu_system& tried) {
    const auto x = tried.matrix_efficiency <= 1 && tried.unhidden <= 1 ? cost(tried) : HUGE_VAL;
    if (x >= least)
      return false;
    least = x;
    best = tried;
    return true;
  };
  for (double step = 0.4; step > 1e-5;) {
    const auto before = best;
    for (auto member : fitted)
      for (auto factor : {std::exp(step), std::exp(-step)}) {
        auto tried = best;
        tried.*member *= factor;
        improves(tried);
      }
    auto further = best; // once more where the whole sweep went
    for (auto member : fitted)
      further.*member *= best.*member / (before.*member);
    const auto swept = least;
    while (improves(further))
      for (auto member : fitted)
        further.*member *= best.*member / (before.*member);
    bool moved = least < swept;
    for (auto member : fitted)
      moved = moved || best.*member != before.*member;
    step = moved ? step : step / 2;
  }
  return best;
}

} // namespace ringmaster::training
