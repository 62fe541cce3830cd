#include "tools/validation/iteration_rows.hpp"

#include "messages/errc.hpp"
#include "tools/validation/csv_table.hpp"

#include <fmt/format.h>

#include <array>

namespace ringmaster {

using namespace training;

namespace {

constexpr std::array<std::string_view, 11> columns{"GPUs",
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
constexpr size_t time_column = 10;

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

caf::expected<measured_iteration> read_row(const csv_table& table, const csv_table::row& from) {
  std::array<double, columns.size()> x{};
  for (size_t i = 0; i < columns.size(); ++i) {
    auto read = table.number(from, i, i != time_column);
    if (!read)
      return std::move(read.error());
    x[i] = *read;
  }
  auto whole = [&](size_t i) { return static_cast<uint32_t>(x[i]); };
  measured_iteration result;
  result.trained = gpt_shape("measured", whole(3), whole(4), whole(5), whole(6));
  result.how.set_degrees(whole(7), whole(8), whole(9));
  result.how.global_batch = whole(1);
  result.how.micro_batch = whole(2);
  result.how.attention = attention_kernel::unfused;
  result.how.gradient_bytes = 2;
  result.older_software = whole(0) <= 8;
  result.how.again = result.older_software ? recomputation::none : recomputation::full;
  result.seconds = x[time_column] / 1e3;
  if (const auto problem = check_iteration(result, whole(0)))
    return table.refused(from, render(problem));
  return result;
}

} // namespace

caf::expected<std::vector<measured_iteration>> read_iteration_rows(const std::string& file) {
  auto table = csv_table::read(file, columns);
  if (!table)
    return std::move(table.error());
  std::vector<measured_iteration> rows;
  for (auto& from : table->rows()) {
    auto row = read_row(*table, from);
    if (!row)
      return std::move(row.error());
    rows.push_back(std::move(*row));
  }
  return rows;
}

} // namespace ringmaster
