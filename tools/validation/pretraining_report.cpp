#include "tools/validation/pretraining_report.hpp"

#include "planner/calibration/calibration.hpp"
#include "planner/plans/plan_search.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/pages/text_table.hpp"
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

/// Deviations of estimates from published trainings. Lines that are too long leave out columns, in this order: bias,
/// median, the worst throughput, the mean of throughputs.
class deviation_table {
public:
  void add(const std::string& what, const std::vector<double>& relative) {
    if (relative.empty())
      return;
    std::vector<double> of_throughputs;
    for (auto x : relative) {
      ensure(x > -1, "an estimate is above 0");
      of_throughputs.push_back(1 / (1 + x) - 1);
    }
    const auto x = deviation_of(relative), y = deviation_of(of_throughputs);
    auto part = [](double of) { return fmt::format("{:.2f} %", 100 * of); };
    auto signed_part = [](double of) { return fmt::format("{:+.1f} %", 100 * of); };
    table_.add_row({what, fmt::to_string(x.count), part(x.mean_absolute), part(x.median_absolute), signed_part(x.mean),
                    signed_part(x.worst), part(y.mean_absolute), signed_part(y.worst)});
  }

  void print(std::FILE* out, const page_format& page) const {
    fmt::print(out, "\n{}{}", page.line("deviations of times, seconds an iteration, and of throughputs (tok.):"),
               table_.text(page.table_columns(), "--wide shows all"));
  }

private:
  text_table table_{{left_column("published trainings"), right_column("count"), right_column("mean |dev.|"),
                     right_column("median", 2), right_column("bias", 1), right_column("worst"),
                     right_column("tok. mean", 4), right_column("tok. worst", 3)}};
};

/// Rows whose settings are replaced by another source's.
void print_corrected(std::FILE* out, const pretraining_rows& rows, const page_format& page) {
  bool printed = false;
  for (auto& x : rows.known)
    if (x.corrected) {
      if (!std::exchange(printed, true))
        fmt::print(out, "{}",
                   page.line("taken from a recipe or another table of the source, which the row contradicts:"));
      fmt::print(out, "{}",
                 page.bullet(fmt::format("{} on {} in {}: {}, PP{}, VPP{}, EP{}, micro-batch of {}", x.model, x.system,
                                         x.release, name_of(x.how.computed_in), x.how.pp, x.how.chunks, x.how.ep,
                                         counted(x.how.micro_batch, "sample"))));
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

void print_pretraining(std::FILE* out, const pretraining_rows& rows, std::span<const double> values, bool split,
                       const page_format& page) {
  deviation_table table;
  auto add_part = [&](fitted_to which, const char* end) {
    table.add(fmt::format("dense{}", end), deviations(rows, values, which, true, false));
    table.add(fmt::format("with experts{}", end), deviations(rows, values, which, false, true));
    table.add(fmt::format("all{}", end), deviations(rows, values, which, true, true));
  };
  if (split) {
    add_part(fitted_to::yes, ", calibrated on");
    add_part(fitted_to::no, ", held out");
  } else {
    add_part(fitted_to::either, "");
  }
  auto planned = rows;
  for (auto& x : planned.known)
    x = as_planned(std::move(x));
  table.add("dense, as plan takes it", deviations(planned, values, fitted_to::either, true, false));
  table.add("with experts, as plan takes it", deviations(planned, values, fitted_to::either, false, true));
  table.print(out, page);
  for (auto& x : rows.skipped)
    fmt::print(out, "{}", page.line(fmt::format("left out: \"{}\", an unknown model", x)));
  print_corrected(out, rows, page);
}

void print_further(std::FILE* out, const pretraining_rows& rows, const pretraining_rows& further,
                   std::span<const double> values, const page_format& page) {
  deviation_table table;
  for (auto [end, with_held_out] : {std::pair{", further", false}, {", held out and further", true}})
    for (auto [kind, dense, experts] :
         {std::tuple{"dense", true, false}, {"with experts", false, true}, {"all", true, true}}) {
      auto relative = deviations(further, values, fitted_to::either, dense, experts);
      if (with_held_out)
        std::ranges::copy(deviations(rows, values, fitted_to::no, dense, experts), std::back_inserter(relative));
      table.add(fmt::format("{}{}", kind, end), relative);
    }
  table.print(out, page);
  print_corrected(out, further, page);
}

void print_left_out(std::FILE* out, const std::vector<published_training>& fitted, const page_format& page) {
  std::vector<double> dense, experts;
  for (size_t i = 0; i < fitted.size(); ++i) {
    auto others = fitted;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto off = estimate_of(fitted[i], fit_pretraining_constants(others)) / fitted[i].seconds - 1;
    (fitted[i].trained.experts.count > 0 ? experts : dense).push_back(off);
  }
  ensure(dense.size() + experts.size() == fitted.size(), "each row is left out once");
  deviation_table table;
  table.add("dense, fitted to the others", dense);
  table.add("with experts, the same", experts);
  dense.insert(dense.end(), experts.begin(), experts.end());
  table.add("all, the same", dense);
  table.print(out, page);
}

void print_pretraining_rows(std::FILE* out, const pretraining_rows& rows, std::span<const double> values, bool split,
                            const page_format& page) {
  ensure(rows.known.size() == rows.numbers.size(), "each known row has its number in the file");
  text_table table{{left_column("model"), left_column("system"), left_column("release", 1), left_column("in"),
                    right_column("GPUs"), right_column("TP"), right_column("CP"), right_column("DP"),
                    right_column("EP"), right_column("PP"), right_column("VPP", 3), right_column("MBS", 2),
                    right_column("published s"), right_column("estimate s"), right_column("off"),
                    left_column("fit", 4)}};
  for (size_t i = 0; i < rows.known.size(); ++i) {
    auto& x = rows.known[i];
    auto& how = x.how;
    const auto estimate = estimate_of(x, values);
    std::vector<std::string> cells{x.model, x.system.substr(x.system.find('-') + 1), x.release,
                                   std::string{name_of(how.computed_in)}};
    for (auto number : {how.devices(), how.tp, how.cp, how.dp, how.ep, how.pp, how.chunks, how.micro_batch})
      cells.push_back(fmt::to_string(number));
    cells.push_back(fmt::format("{:.3f}", x.seconds));
    cells.push_back(fmt::format("{:.3f}", estimate));
    cells.push_back(fmt::format("{:+.1f} %", 100 * (estimate / x.seconds - 1)));
    cells.emplace_back(!split ? "" : is_fitted(rows.numbers[i]) ? "yes" : "held out");
    table.add_row(std::move(cells));
  }
  fmt::print(out, "\n{}", table.text(page.table_columns(), "--wide shows all"));
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
