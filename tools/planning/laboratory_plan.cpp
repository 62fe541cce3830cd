#include "tools/planning/laboratory_plan.hpp"

#include "runtime/text/json_field.hpp"
#include "runtime/text/pages/quantity_column.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster {

using namespace training;

namespace {

/// Tables of the searched ones, whose numbers have the same units. Where lines are too long they leave columns out, in
/// this order: comm., bubble, MFU, micro, VPP.
class laboratory_tables {
public:
  laboratory_tables(const search_question& asked, const search_outcome& found, const page_format& page)
    : asked_(asked), page_(page),
      time_(numbers_of(found, [](const searched& x) { return x.time; }), asked.costs->time_unit()),
      memory_(numbers_of(found, [](const searched& x) { return static_cast<double>(x.peak_memory); }),
              asked.costs->memory_unit()) {}

  std::string of(const std::vector<searched>& all) const {
    text_table table{{left_column("strategy"), right_column("TP"), right_column("DP"), right_column("PP"),
                      right_column("micro", 4), right_column("VPP", 5), right_column("time, " + time_.unit()),
                      right_column("MFU, %", 3), right_column("bubble, %", 2), right_column("comm., %", 1),
                      right_column("peak, " + memory_.unit())}};
    for (auto& x : all)
      table.add_row(cells_of(x));
    return table.text(page_.table_columns(), "--wide shows all");
  }

private:
  std::vector<std::string> cells_of(const searched& x) const {
    const auto mfu = asked_.costs->mfu_percent(x.trained, asked_.ranks, x.time);
    const auto shape = x.which->shape(x.trained, asked_.ranks);
    return {std::string{x.which->name},
            fmt::to_string(shape.tensor),
            fmt::to_string(shape.data),
            fmt::to_string(shape.pipeline),
            fmt::to_string(x.trained.micro_batch),
            fmt::to_string(x.trained.parallel.chunks),
            time_.text(x.time),
            mfu < 0 ? "" : fmt::format("{:.2f}", mfu),
            fmt::format("{:.2f}", 100 * x.bubble),
            fmt::format("{:.2f}", 100 * x.communication),
            memory_.text(static_cast<double>(x.peak_memory))};
  }

  static std::vector<double> numbers_of(const search_outcome& found, double (*of)(const searched&)) {
    std::vector<double> result;
    for (auto* list : {&found.best, &found.pareto})
      for (auto& x : *list)
        result.push_back(of(x));
    if (found.plain)
      result.push_back(of(*found.plain));
    return result;
  }

  const search_question& asked_;
  page_format page_;
  quantity_column time_, memory_;
};

json_value json_of(const search_question& asked, const searched& x) {
  const auto mfu = asked.costs->mfu_percent(x.trained, asked.ranks, x.time);
  const auto shape = x.which->shape(x.trained, asked.ranks);
  return {{"strategy", x.which->name},
          {"tensor", shape.tensor},
          {"data", shape.data},
          {"stages", shape.pipeline},
          {"micro_batch", x.trained.micro_batch},
          {"chunks", x.trained.parallel.chunks},
          {"time_unit", asked.costs->time_unit()},
          {"time_s", x.time},
          {"end_s", x.end},
          {"peak_memory", x.peak_memory},
          {"peak_memory_unit", asked.costs->memory_unit()},
          {"mfu_percent", mfu < 0 ? json_value{} : json_value(mfu)},
          {"bubble_fraction", x.bubble},
          {"communication_fraction", x.communication}};
}

} // namespace

std::string report_of(const search_question& asked, const search_outcome& found, const page_format& page) {
  auto head = fmt::format("{}, a global batch of {} on {}, cost model {}: {}, {} simulated",
                          counted(asked.layers, "layer"), asked.global_batch, counted(asked.ranks, "rank"),
                          asked.costs->name(), counted(found.candidates, "candidate"), found.simulated);
  if (const auto rest = found.candidates - found.simulated - found.open; rest > 0)
    head += fmt::format("; {} are slower or larger by lower bounds", rest);
  if (found.open > 0)
    head += fmt::format("; {} would take too long to simulate, of which {} might be among the best", found.open,
                        found.open_best);
  auto text = page.line(head) + "\n";
  if (found.best.empty())
    return text
           + page.line(found.candidates == 0
                         ? fmt::format("No strategy can train these layers and this batch on {}.",
                                       counted(asked.ranks, "rank"))
                         : "None was simulated that fits: take more --memory, or fewer ranks or micro-batches.");
  text += page.line("TP, DP, PP: tensor-, data- and pipeline-parallel ranks; VPP: chunks of a stage") + "\n";
  const laboratory_tables tables{asked, found, page};
  text += tables.of(found.best);
  if (found.plain) {
    text += "\nPlain data parallel with accumulation, at its fastest:\n" + tables.of({*found.plain});
    const auto gain = 1 - found.best.front().time / found.plain->time;
    text += gain > 0 ? fmt::format("The best takes {:.2f} % less time.\n", 100 * gain)
                     : std::string{"Nothing beats it.\n"};
  }
  return text
         + fmt::format("\nThe Pareto front of time and memory{}:\n{}", found.open == 0 ? "" : ", of those simulated",
                       tables.of(found.pareto));
}

std::string json_of(const search_question& asked, const search_outcome& found) {
  auto list = [&](const std::vector<searched>& all) {
    auto result = json_value::array();
    for (auto& x : all)
      result.push_back(json_of(asked, x));
    return result;
  };
  return json_text({{"cost_model", asked.costs->name()},
                    {"ranks", asked.ranks},
                    {"layers", asked.layers},
                    {"global_batch", asked.global_batch},
                    {"candidates", found.candidates},
                    {"simulated", found.simulated},
                    {"open", found.open},
                    {"open_best", found.open_best},
                    {"best", list(found.best)},
                    {"plain", found.plain ? json_of(asked, *found.plain) : json_value{}},
                    {"pareto", list(found.pareto)}})
         + "\n";
}

} // namespace ringmaster
