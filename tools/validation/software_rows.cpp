#include "tools/validation/software_rows.hpp"

#include "planner/calibration/calibration.hpp"
#include "planner/models/known_models.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "tools/validation/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster {

using namespace training;

namespace {

constexpr std::array<std::string_view, 18> software_columns{"software",
                                                            "model",
                                                            "system",
                                                            "gpus",
                                                            "precision",
                                                            "global batch",
                                                            "micro batch",
                                                            "sequence length",
                                                            "vocabulary",
                                                            "fsdp",
                                                            "tensor parallelism",
                                                            "pipeline parallelism",
                                                            "context parallelism",
                                                            "virtual stages",
                                                            "expert parallelism",
                                                            "schedule",
                                                            "recomputation",
                                                            "seconds"};

/// The member of an enumeration that has this name.
template <class Named>
caf::expected<Named> named(const csv_row& from, std::string_view column, std::initializer_list<Named> all) {
  for (auto x : all)
    if (name_of(x) == from.text(column))
      return x;
  return from.refused(fmt::format("\"{}\" is no {}", from.text(column), column));
}

caf::expected<software_row> read_software_row(csv_row from) {
  using enum pipeline_schedule;
  auto trained = model_of(from.text("model"));
  auto system = system_of(from.text("system"));
  auto schedule = named(from, "schedule", {one_f_one_b, interleaved_1f1b, dualpipe});
  auto again = named(from, "recomputation", {recomputation::none, recomputation::selective, recomputation::full});
  auto precision = named(from, "precision", {number_format::bf16, number_format::fp8});
  for (auto* problem : {trained ? nullptr : &trained.error(), system ? nullptr : &system.error(),
                        schedule ? nullptr : &schedule.error(), again ? nullptr : &again.error(),
                        precision ? nullptr : &precision.error()})
    if (problem != nullptr)
      return std::move(*problem);
  software_row x{generation_of(from.text("software")), *trained, *system, {}, from.number("seconds")};
  if (x.software == nullptr)
    return from.refused(fmt::format("\"{}\" is no software", from.text("software")));
  x.trained.sequence = from.whole("sequence length");
  x.trained.vocabulary = from.whole("vocabulary");
  auto& how = x.how;
  const auto gpus = from.whole("gpus"), tensor = from.whole("tensor parallelism"),
             pipeline = from.whole("pipeline parallelism"), context = from.whole("context parallelism");
  how.ep = from.whole("expert parallelism");
  how.global_batch = from.whole("global batch");
  how.micro_batch = from.whole("micro batch");
  how.chunks = from.whole("virtual stages");
  how.shard_ranks = from.count_or_none("fsdp");
  if (from.problem())
    return from.problem();
  if (gpus % tensor != 0 || gpus / tensor % pipeline != 0 || gpus / tensor / pipeline % context != 0)
    return from.refused(fmt::format("{} GPUs do not divide by tensor {} x pipeline {} x context {}", gpus, tensor,
                                    pipeline, context));
  how.set_degrees(tensor, gpus / tensor / pipeline / context, pipeline);
  how.cp = context;
  if (how.global_batch % (uint64_t{how.dp} * how.micro_batch) != 0)
    return from.refused(fmt::format("a global batch of {} is no multiple of {} samples x {} data-parallel ranks",
                                    how.global_batch, how.micro_batch, how.dp));
  how.schedule = *schedule;
  how.again = *again;
  how.computed_in = *precision;
  how.sequence_parallel = how.tp > 1;
  how.zero = how.shard_ranks > 0 ? 0 : 1;
  how.overlapped = true;
  return x;
}

std::vector<software_row> of_software(std::span<const software_row> rows, const software_generation* which) {
  std::vector<software_row> result;
  std::ranges::copy_if(rows, std::back_inserter(result), [&](auto& x) { return x.software == which; });
  return result;
}

} // namespace

caf::expected<std::vector<software_row>> read_software_rows(const std::string& file) {
  auto table = csv_table::read(file, {software_columns, {}});
  if (!table)
    return std::move(table.error());
  std::vector<software_row> result;
  for (size_t i = 0; i < table->row_count(); ++i) {
    auto row = read_software_row(table->row(i));
    if (!row)
      return std::move(row.error());
    result.push_back(std::move(*row));
  }
  return result;
}

double estimate_of(const software_row& x, double products) {
  return estimate_iteration(x.trained, with_generation(x.on, *x.software, products), x.how).seconds;
}

double fit_products(std::span<const software_row> rows) {
  constexpr double outlier = 0.04;
  return pattern_search({1.0},
                        [&](std::span<const double> values) {
                          double result = 0;
                          for (auto& x : rows) {
                            const auto z = std::log(estimate_of(x, values[0]) / x.seconds) / outlier;
                            result += 2 * (std::sqrt(1 + z * z) - 1);
                          }
                          return result;
                        })
    .front();
}

double products_without(std::span<const software_row> rows, const software_row& left_out) {
  auto others = of_software(rows, left_out.software);
  std::erase_if(others, [&](auto& x) { return x.trained.name == left_out.trained.name; });
  return others.empty() || left_out.software->products == 1 ? left_out.software->products : fit_products(others);
}

void print_software_rows(std::FILE* out, std::span<const software_row> rows, const page_format& page) {
  text_table table{{left_column("software"), left_column("model"), left_column("system"), right_column("GPUs"),
                    left_column("in", 1), right_column("published s"), right_column("estimate s"), right_column("off"),
                    right_column("left out of fit", 2)}};
  for (auto& x : rows) {
    ensure(x.software != nullptr && x.seconds > 0, "a row has its software and its time");
    const auto estimate = estimate_of(x, x.software->products), without = products_without(rows, x);
    table.add_row({std::string{x.software->name}, x.trained.name, x.on.name, fmt::to_string(x.how.devices()),
                   std::string{name_of(x.how.computed_in)}, fmt::format("{:.3f}", x.seconds),
                   fmt::format("{:.3f}", estimate), fmt::format("{:+.1f} %", 100 * (estimate / x.seconds - 1)),
                   without == 1 ? "nothing fitted"
                                : fmt::format("{:+.1f} %", 100 * (estimate_of(x, without) / x.seconds - 1))});
  }
  fmt::print(out, "\n{}", table.text(page.table_columns(), "--wide shows all"));
}

} // namespace ringmaster
