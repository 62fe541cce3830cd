#include "tools/validation/pretraining_report.hpp"

#include "planner/calibration/calibration.hpp"
#include "planner/plans/plan_search.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace ringmaster {

using namespace training;

namespace {

enum class fitted_to : uint8_t { yes, no, either };

bool is_fitted(size_t number) {
  return number % 2 == 0;
}

/// Of times, the estimate's from what was published.
std::vector<double> deviations(const pretraining_rows& rows, std::span<const double> values, fitted_to which,
                               bool dense, bool experts) {
  std::vector<double> result;
  for (size_t i = 0; i < rows.known.size(); ++i) {
    auto& x = rows.known[i];
    const bool of_kind = x.trained.experts.count > 0 ? experts : dense;
    const bool of_part = which == fitted_to::either || is_fitted(rows.numbers[i]) == (which == fitted_to::yes);
    if (of_kind && of_part)
      result.push_back(estimate_of(x, values) / x.seconds - 1);
  }
  return result;
}

void print_head(std::FILE* out) {
  fmt::print(out, "\n{:<42} {:>45} {:>23}\n", "", "of times, seconds an iteration", "of throughputs");
  fmt::print(out, "{:<36} {:>5} {:>12} {:>10} {:>10} {:>10} {:>12} {:>10}\n", "published trainings", "count",
             "mean |dev.|", "median", "bias", "worst", "mean |dev.|", "worst");
}

void print_line(std::FILE* out, const std::string& what, const std::vector<double>& relative) {
  if (relative.empty())
    return;
  std::vector<double> of_throughputs;
  for (auto x : relative)
    of_throughputs.push_back(1 / (1 + x) - 1);
  const auto x = deviation_of(relative), y = deviation_of(of_throughputs);
  fmt::print(out, "{:<36} {:>5} {:>10.2f} % {:>8.2f} % {:>+8.1f} % {:>+8.1f} % {:>10.2f} % {:>+8.1f} %\n", what,
             x.count, 100 * x.mean_absolute, 100 * x.median_absolute, 100 * x.mean, 100 * x.worst,
             100 * y.mean_absolute, 100 * y.worst);
}

/// Rows that are taken to have been run otherwise than they say.
void print_corrected(std::FILE* out, const pretraining_rows& rows) {
  bool any = false;
  for (auto& x : rows.known)
    if (x.corrected) {
      if (!std::exchange(any, true))
        fmt::print(out, "taken as a recipe or another table of the source has them, which their row contradicts:\n");
      fmt::print(out, "  {} on {} in {}: {}, p = {}, v = {}, e = {}, {} a micro-batch\n", x.model, x.system, x.release,
                 name_of(x.how.computed_in), x.how.shape.pipeline, x.how.chunks, x.how.expert,
                 counted(x.how.micro_batch, "sample"));
    }
}

} // namespace

published_training as_planned(published_training x) {
  x.ran.reset();
  return x;
}

std::vector<published_training> fitted_rows(const pretraining_rows& rows) {
  std::vector<published_training> result;
  for (size_t i = 0; i < rows.known.size(); ++i)
    if (is_fitted(rows.numbers[i]))
      result.push_back(rows.known[i]);
  return result;
}

void print_pretraining(std::FILE* out, const pretraining_rows& rows, std::span<const double> values, bool split) {
  print_head(out);
  auto print_part = [&](fitted_to which, const char* end) {
    print_line(out, fmt::format("dense{}", end), deviations(rows, values, which, true, false));
    print_line(out, fmt::format("with experts{}", end), deviations(rows, values, which, false, true));
    print_line(out, fmt::format("all{}", end), deviations(rows, values, which, true, true));
  };
  if (split) {
    print_part(fitted_to::yes, ", calibrated on");
    print_part(fitted_to::no, ", held out");
  } else {
    print_part(fitted_to::either, "");
  }
  auto planned = rows;
  for (auto& x : planned.known)
    x = as_planned(std::move(x));
  print_line(out, "dense, as plan takes it", deviations(planned, values, fitted_to::either, true, false));
  print_line(out, "with experts, as plan takes it", deviations(planned, values, fitted_to::either, false, true));
  for (auto& x : rows.skipped)
    fmt::print(out, "left out: \"{}\", of which nothing is known here\n", x);
  print_corrected(out, rows);
}

void print_further(std::FILE* out, const pretraining_rows& rows, const pretraining_rows& further,
                   std::span<const double> values) {
  print_head(out);
  for (auto [end, with_held_out] : {std::pair{", further", false}, {", held out and further", true}})
    for (auto [kind, dense, experts] :
         {std::tuple{"dense", true, false}, {"with experts", false, true}, {"all", true, true}}) {
      auto relative = deviations(further, values, fitted_to::either, dense, experts);
      if (with_held_out)
        std::ranges::copy(deviations(rows, values, fitted_to::no, dense, experts), std::back_inserter(relative));
      print_line(out, fmt::format("{}{}", kind, end), relative);
    }
  print_corrected(out, further);
}

void print_left_out(std::FILE* out, const std::vector<published_training>& fitted) {
  std::vector<double> dense, experts;
  for (size_t i = 0; i < fitted.size(); ++i) {
    auto others = fitted;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto off = estimate_of(fitted[i], fit_pretraining_constants(others)) / fitted[i].seconds - 1;
    (fitted[i].trained.experts.count > 0 ? experts : dense).push_back(off);
  }
  print_head(out);
  print_line(out, "dense, fitted to the others", dense);
  print_line(out, "with experts, the same", experts);
  dense.insert(dense.end(), experts.begin(), experts.end());
  print_line(out, "all, the same", dense);
}

void print_pretraining_rows(std::FILE* out, const pretraining_rows& rows, std::span<const double> values, bool split) {
  fmt::print(out, "\n{:<21} {:<9} {:<8} {:<5} {:>5} {:>3} {:>3} {:>4} {:>3} {:>3} {:>3} {:>5} {:>10} {:>10} {:>9}\n",
             "model", "system", "release", "in", "GPUs", "t", "c", "d", "e", "p", "v", "micro", "published s",
             "estimate s", "");
  for (size_t i = 0; i < rows.known.size(); ++i) {
    auto& x = rows.known[i];
    auto& how = x.how;
    const auto estimate = estimate_of(x, values);
    fmt::print(
      out,
      "{:<21} {:<9} {:<8} {:<5} {:>5} {:>3} {:>3} {:>4} {:>3} {:>3} {:>3} {:>5} {:>11.3f} {:>10.3f} {:>+7.1f} %{}\n",
      x.model, x.system.substr(x.system.find('-') + 1), x.release, name_of(how.computed_in), how.devices(),
      how.shape.tensor, how.context, how.shape.data, how.expert, how.shape.pipeline, how.chunks, how.micro_batch,
      x.seconds, estimate, 100 * (estimate / x.seconds - 1),
      !split                       ? ""
      : is_fitted(rows.numbers[i]) ? "  calibrated on"
                                   : "  held out");
  }
}

double best_plan_of(const published_training& x) {
  plan_question asked{x.trained, with_pretraining_software(x.on, x.generation), x.how.devices(), x.how.global_batch};
  asked.filter.computed_in = x.how.computed_in;
  const auto found = plan_transformer(asked, 1);
  return found.best.empty() ? 0 : found.best.front().cost.seconds;
}

void print_beside_best(std::FILE* out, const pretraining_rows& rows) {
  std::vector<double> dense, experts;
  fmt::print(out, "\n{:<21} {:<9} {:<5} {:>5} {:>11} {:>11} {:>8}\n", "model", "system", "in", "GPUs", "published s",
             "best plan s", "times");
  for (auto& x : rows.known) {
    const auto best = best_plan_of(x);
    if (best == 0)
      continue;
    (x.trained.experts.count > 0 ? experts : dense).push_back(x.seconds / best);
    fmt::print(out, "{:<21} {:<9} {:<5} {:>5} {:>11.3f} {:>11.3f} {:>8.2f}\n", x.model,
               x.system.substr(x.system.find('-') + 1), name_of(x.how.computed_in), x.how.devices(), x.seconds, best,
               x.seconds / best);
  }
  for (auto [what, times] : {std::pair{"dense", &dense}, {"with experts", &experts}}) {
    if (times->empty())
      continue;
    std::ranges::sort(*times);
    fmt::print(out, "{}: {} trainings took {:.2f} times as long as the best plan for them, up to {:.2f}\n", what,
               times->size(), (*times)[times->size() / 2], times->back());
  }
}

void print_pretraining_constants(std::FILE* out, std::span<const double> values) {
  fmt::print(out, "\n{:<45} {:>10} {:>10}\n", "constant", "fitted", "from");
  for (size_t i = 0; i < values.size(); ++i)
    fmt::print(out, "{:<45} {:>10.4g} {:>10.4g}\n", pretraining_constants()[i].name, values[i],
               pretraining_constants()[i].start);
}

} // namespace ringmaster
