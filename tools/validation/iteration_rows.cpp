#include "tools/validation/iteration_rows.hpp"

#include "messages/errc.hpp"
#include "tools/validation/csv_table.hpp"

#include <fmt/format.h>

#include <array>

namespace ringmaster {

using namespace training;

namespace {

constexpr std::array<std::string_view, 11> iteration_columns{"GPUs",
                                                             "global batch",
                                                             "micro batch",
                                                             "hidden size",
                                                             "attention heads",
                                                             "layers",
                                                             "sequence length",
                                                             "tensor parallelism",
                                                             "data parallelism",
                                                             "pipeline parallelism",
                                                             "iteration time (ms)"};
constexpr std::array<std::string_view, 1> ignored_columns{"Parameters (billion)"};

/// Errors: corrupt, where it cannot have been measured.
caf::error check_iteration(const measured_iteration& x, uint32_t gpus) {
  auto& how = x.how;
  if (uint64_t{how.tp} * how.dp * how.pp != gpus)
    return malformed(fmt::format("{} tensor x {} data x {} pipeline parallelism is not {} GPUs", how.tp, how.dp, how.pp,
                                 gpus));
  if (how.global_batch % (uint64_t{how.micro_batch} * how.dp) != 0)
    return malformed(fmt::format("a global batch of {} is no multiple of {} samples x {} data-parallel ranks",
                                 how.global_batch, how.micro_batch, how.dp));
  return {};
}

caf::expected<measured_iteration> read_row(csv_row from) {
  measured_iteration result;
  const auto gpus = from.whole("GPUs");
  result.trained = gpt_shape("measured", from.whole("hidden size"), from.whole("attention heads"), from.whole("layers"),
                             from.whole("sequence length"));
  result.how.set_degrees(from.whole("tensor parallelism"), from.whole("data parallelism"),
                         from.whole("pipeline parallelism"));
  result.how.global_batch = from.whole("global batch");
  result.how.micro_batch = from.whole("micro batch");
  result.how.attention = attention_kernel::unfused;
  result.how.gradient_bytes = 2;
  result.older_software = gpus <= 8;
  result.how.again = result.older_software ? recomputation::none : recomputation::full;
  result.seconds = from.number("iteration time (ms)") / 1e3;
  if (from.problem())
    return from.problem();
  if (const auto problem = check_iteration(result, gpus))
    return from.refused(render(problem));
  return result;
}

} // namespace

caf::expected<std::vector<measured_iteration>> read_iteration_rows(const std::string& file) {
  auto table = csv_table::read(file, {iteration_columns, ignored_columns});
  if (!table)
    return std::move(table.error());
  std::vector<measured_iteration> rows;
  for (size_t i = 0; i < table->row_count(); ++i) {
    auto row = read_row(table->row(i));
    if (!row)
      return std::move(row.error());
    rows.push_back(std::move(*row));
  }
  return rows;
}

} // namespace ringmaster
