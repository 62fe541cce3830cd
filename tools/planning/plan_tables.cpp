#include "tools/planning/plan_tables.hpp"

#include "messages/errc.hpp"
#include "planner/plans/plan_filter.hpp"
#include "planner/search/plan_outcome.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "tools/simulated_training/transformer_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

/// In which order columns are left out where lines are too long.
enum leave_out : unsigned {
  never,
  closed_memory,
  closed_seconds,
  mfu,
  sequence_parallelism,
  beside_first,
  recomputing,
  sharding,
  micro_batch,
  chunks
};

using table_columns = std::vector<text_table::column>;
using table_cells = std::vector<std::string>;

constexpr const char* see_all = "--wide shows all";

table_columns plan_columns(table_columns before = {}) {
  before.insert(before.end(), {right_column("TP"), right_column("CP"), right_column("DP"), right_column("EP"),
                               right_column("PP"), right_column("VPP", chunks), right_column("MBS", micro_batch),
                               left_column("schedule"), left_column("recompute", recomputing),
                               left_column("SP", sequence_parallelism), left_column("sharding", sharding)});
  return before;
}

table_cells plan_cells(const training_setting& how, table_cells before = {}) {
  for (auto number : {how.tp, how.cp, how.dp, how.ep, how.pp, how.chunks, how.micro_batch})
    before.push_back(fmt::to_string(number));
  before.emplace_back(how.pp > 1 ? name_of(how.schedule) : "-");
  before.emplace_back(name_of(how.again));
  before.emplace_back(how.sequence_parallel ? "yes" : "no");
  before.push_back(sharding_of(how));
  return before;
}

std::string seconds_text(double x) {
  return fmt::format("{:.3f}", x);
}

std::string gigabytes_text(double bytes) {
  return fmt::format("{:.1f}", bytes / giga);
}

/// How much slower than the best, and what a plan has more of.
std::string why_slower(const planned& x, const planned& best) {
  auto parts = seconds_by_part(x.cost);
  const auto others = seconds_by_part(best.cost);
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i].amount -= others[i].amount;
  const auto most = std::ranges::max_element(parts, {}, [](auto& part) { return part.amount; });
  return fmt::format("{:+.2f} {}", x.cost.seconds - best.cost.seconds,
                     most->amount > 0 ? most->name : "the same in all");
}

/// A letter for each reason why a plan was not simulated: a, b, ...
class footnotes {
public:
  std::string mark_of(const std::string& reason) {
    auto at = std::ranges::find(reasons_, reason);
    if (at == reasons_.end())
      at = reasons_.insert(at, reason);
    return std::string(1, static_cast<char>('a' + (at - reasons_.begin())));
  }

  std::string text(const page_format& page) const {
    std::string result;
    for (size_t i = 0; i < reasons_.size(); ++i)
      result += page.line(fmt::format("{}: not simulated: {}", static_cast<char>('a' + i), reasons_[i]), 3);
    return result;
  }

private:
  std::vector<std::string> reasons_;
};

/// How many of the best plans were simulated, and how.
std::string confirmed_text(const std::vector<confirmed_plan>& best) {
  const auto counts = counts_of(best);
  table_cells parts;
  if (counts.whole > 0)
    parts.push_back(fmt::format("{} by the whole step", counts.whole));
  if (counts.by_shorter_steps > 0)
    parts.push_back(fmt::format("{} (*) by two shorter steps, since each further micro-batch takes as long as the last",
                                counts.by_shorter_steps));
  if (counts.closed_form > 0)
    parts.push_back(fmt::format("{} not: in closed form alone, for the reason below", counts.closed_form));
  return fmt::format("confirmed by simulation: {}", fmt::join(parts, "; "));
}

/// What differences mean, and where that figure is from.
std::string error_text(const estimate_error& error, size_t others, size_t ties) {
  auto text = fmt::format("Differences of less than {:.0f} % mean nothing", 100 * error.tie);
  if (error.assumed_because)
    text += fmt::format(": that error is assumed, since {}.", *error.assumed_because);
  else if (error.least > 1)
    text += fmt::format(": beside published trainings estimates are {:.0f} to {:.0f} % too fast.",
                        100 * (1 - 1 / error.least), 100 * (1 - 1 / error.most));
  else
    text += fmt::format(": beside published trainings, each with the software that it ran, estimates are off by {:.0f} "
                        "% in the mean.",
                        100 * error.tie);
  if (others == 0)
    return text;
  return text
         + fmt::format(" {} {} with the first.", ties == 0 ? "None" : fmt::to_string(ties),
                       ties == 1  ? "other plan is a tie"
                       : ties > 1 ? "other plans are ties"
                                  : "of the other plans is a tie");
}

std::string frameworks_text(const training_setting& how) {
  table_cells all;
  for (auto framework : {training_framework::megatron, training_framework::torchtitan})
    if (can_run(framework, how))
      all.emplace_back(name_of(framework));
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "));
}

} // namespace

std::string legend_of(const page_format& page) {
  return page.line("TP, CP, DP, EP, PP: tensor-, context-, data-, expert- and pipeline-parallel ranks; VPP: chunks of "
                   "a stage; MBS: sequences of a micro-batch; SP: sequence parallelism")
         + page.line("seconds, MFU, peak GB: of a step as simulated; closed: the same in closed form; vs first: how "
                     "many seconds longer in closed form, most of them for what");
}

std::string best_table(const plan_outcome& x, const page_format& page) {
  auto columns = plan_columns({{"#"}});
  columns.insert(columns.end(), {right_column("seconds"), left_column(""), right_column("MFU %", mfu),
                                 right_column("peak GB"), right_column("closed s", closed_seconds),
                                 right_column("closed GB", closed_memory), left_column("vs first", beside_first)});
  text_table table{columns};
  footnotes notes;
  bool too_large = false;
  size_t number = 0;
  for (auto& each : x.best) {
    auto& plan = each.plan;
    const bool fits = !each.simulated || each.simulated->fits(x.asked.system);
    too_large = too_large || !fits;
    auto cells = plan_cells(plan.how, {fmt::to_string(++number)});
    cells.push_back(seconds_text(each.seconds()));
    cells.push_back(fmt::format("{}{}", !each.simulated ? notes.mark_of(render(each.problem)) : "",
                                each.by_shorter_steps() ? "*" : ""));
    cells.back() += fits ? "" : "!";
    cells.push_back(fmt::format("{:.2f}", 100 * figures_of(x, plan, each.seconds()).mfu));
    cells.push_back(gigabytes_text(each.simulated ? each.simulated->memory_bytes : plan.cost.memory_bytes));
    cells.push_back(seconds_text(plan.cost.seconds));
    cells.push_back(gigabytes_text(plan.cost.memory_bytes));
    cells.push_back(number == 1 ? "" : why_slower(plan, x.best.front().plan));
    table.add_row(std::move(cells));
  }
  return table.text(page.table_columns(), see_all) + page.line(confirmed_text(x.best)) + notes.text(page)
         + (too_large ? page.line("!: does not fit as simulated") : "");
}

std::string closed_form_table(const std::vector<planned>& plans, const page_format& page) {
  auto columns = plan_columns();
  columns.insert(columns.end(), {right_column("seconds"), right_column("MFU %", mfu), right_column("peak GB")});
  text_table table{columns};
  for (auto& each : plans) {
    auto cells = plan_cells(each.how);
    cells.push_back(seconds_text(each.cost.seconds));
    cells.push_back(fmt::format("{:.2f}", 100 * each.cost.mfu));
    cells.push_back(gigabytes_text(each.cost.memory_bytes));
    table.add_row(std::move(cells));
  }
  return table.text(page.table_columns(), see_all);
}

std::string too_large_table(const std::vector<planned>& plans, const gpu_system& on, const page_format& page) {
  auto columns = plan_columns();
  columns.insert(columns.end(), {right_column("seconds"), right_column("MFU %", mfu), right_column("peak GB"),
                                 right_column("lacks GB"), right_column("lacks host GB")});
  text_table table{columns};
  for (auto& each : plans) {
    const auto lack = lack_of(each, on);
    auto cells = plan_cells(each.how);
    cells.push_back(seconds_text(each.cost.seconds));
    cells.push_back(fmt::format("{:.2f}", 100 * each.cost.mfu));
    cells.push_back(gigabytes_text(each.cost.memory_bytes));
    cells.push_back(lack.device > 0 ? gigabytes_text(lack.device) : "");
    cells.push_back(lack.host > 0 ? gigabytes_text(lack.host) : "");
    table.add_row(std::move(cells));
  }
  return table.text(page.table_columns(), see_all);
}

std::string error_table(const plan_outcome& x, const page_format& page) {
  text_table table{{right_column("#"), right_column("seconds"), right_column("error band"), left_column(""),
                    left_column("frameworks that run it")}};
  const auto first = x.best.front().seconds();
  size_t number = 0, ties = 0;
  for (auto& each : x.best) {
    const auto band = band_of(x.asked, each.seconds(), first);
    const bool is_first = ++number == 1, tie = band.tie && !is_first;
    table.add_row({fmt::to_string(number), seconds_text(each.seconds()),
                   fmt::format("{} to {}", seconds_text(band.least), seconds_text(band.most)),
                   is_first ? "first"
                   : tie    ? "tie"
                            : "-",
                   frameworks_text(each.plan.how)});
    ties += tie;
  }
  return table.text(page.table_columns(), see_all) + page.line(error_text(error_of(x.asked), x.best.size() - 1, ties));
}

using namespace training;

std::string amount_text(double x) {
  constexpr std::pair<double, std::string_view> units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}};
  for (auto [unit, letter] : units)
    if (x >= unit)
      return fmt::format("{:.7g}{}", x / unit, letter);
  return fmt::format("{:.7g}", x);
}

std::string grouped_text(double x) {
  auto text = fmt::format("{:.0f}", x);
  for (auto at = static_cast<ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string sharding_of(const training_setting& how) {
  if (how.shard_ranks == 0)
    return fmt::format("zero{}", how.zero);
  return how.shard_ranks == how.dp * how.cp ? "fsdp" : fmt::format("hsdp {}", how.shard_ranks);
}

std::string short_text(const training_setting& how) {
  auto text = fmt::format("TP{} CP{} DP{}{} PP{}, micro-batch {}", how.tp, how.cp, how.dp,
                          how.ep > 1 ? fmt::format(" EP{}", how.ep) : "", how.pp, how.micro_batch);
  if (how.pp > 1)
    text += fmt::format(", {}", name_of(how.schedule));
  if (how.chunks > 1)
    text += fmt::format(", VPP{}", how.chunks);
  if (how.sequence_parallel)
    text += ", SP";
  text += ", " + sharding_of(how);
  return how.again == recomputation::none ? text : text + fmt::format(", recompute {}", name_of(how.again));
}

} // namespace ringmaster
