#include "tools/training/iteration_rows.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>

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

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> result;
  while (true) {
    auto comma = line.find(',');
    auto cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '#'))
      cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\r'))
      cell.remove_suffix(1);
    result.push_back(cell);
    if (comma == std::string_view::npos)
      return result;
    line.remove_prefix(comma + 1);
  }
}

/// Where the columns are.
caf::expected<std::array<size_t, columns.size()>> places_in(std::string_view header) {
  auto names = cells_of(header);
  std::array<size_t, columns.size()> result{};
  for (size_t i = 0; i < columns.size(); ++i) {
    auto at = std::ranges::find(names, columns[i]);
    if (at == names.end())
      return make_error(errc::corrupt, fmt::format("line 1 has no column \"{}\"", columns[i]));
    result[i] = static_cast<size_t>(at - names.begin());
  }
  return result;
}

caf::expected<double> number_in(std::span<const std::string_view> cells, size_t place, size_t column) {
  double x = 0;
  auto text = place < cells.size() ? cells[place] : std::string_view{};
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  const bool whole = column == time_column || (x >= 1 && x < 1e9 && x == static_cast<double>(static_cast<uint32_t>(x)));
  if (problem != std::errc{} || end != text.data() + text.size() || !(x > 0) || !whole)
    return make_error(errc::corrupt, fmt::format("\"{}\" is no {} (a {} above 0)", text, columns[column],
                                                 column == time_column ? "number" : "whole number"));
  return x;
}

/// Why it cannot be what was measured.
std::string problem_of(const measured_iteration& x, uint32_t gpus) {
  auto& how = x.how;
  if (uint64_t{how.shape.tensor} * how.shape.data * how.shape.pipeline != gpus)
    return fmt::format("{} tensor x {} data x {} pipeline parallelism is not {} GPUs", how.shape.tensor, how.shape.data,
                       how.shape.pipeline, gpus);
  if (how.global_batch % (uint64_t{how.micro_batch} * how.shape.data) != 0)
    return fmt::format("a global batch of {} is no multiple of {} samples x {} data-parallel ranks", how.global_batch,
                       how.micro_batch, how.shape.data);
  return {};
}

caf::expected<measured_iteration> read_row(std::string_view line, const std::array<size_t, columns.size()>& places) {
  auto cells = cells_of(line);
  std::array<double, columns.size()> x{};
  for (size_t i = 0; i < columns.size(); ++i) {
    auto read = number_in(cells, places[i], i);
    if (!read)
      return std::move(read.error());
    x[i] = *read;
  }
  auto whole = [&](size_t i) { return static_cast<uint32_t>(x[i]); };
  measured_iteration result;
  result.trained.hidden = whole(3);
  result.trained.heads = whole(4);
  result.trained.layers = whole(5);
  result.trained.sequence = whole(6);
  result.how.shape = {whole(7), whole(8), whole(9)};
  result.how.global_batch = whole(1);
  result.how.micro_batch = whole(2);
  result.older_software = whole(0) <= 8;
  result.how.again = result.older_software ? recomputation::none : recomputation::full;
  result.seconds = x[time_column] / 1e3;
  if (auto problem = problem_of(result, whole(0)); !problem.empty())
    return make_error(errc::corrupt, problem);
  return result;
}

} // namespace

caf::expected<std::vector<measured_iteration>> read_iteration_rows(const std::string& file) {
  std::ifstream in{file};
  std::string line;
  if (!in || !std::getline(in, line))
    return make_error(
      errc::io_error,
      fmt::format("cannot read {}: --data names a directory with single.csv and multi.csv, or a CSV file", file));
  auto places = places_in(line);
  if (!places)
    return make_error(errc::corrupt, fmt::format("{}: {}", file, render(places.error())));
  std::vector<measured_iteration> rows;
  for (size_t number = 2; std::getline(in, line); ++number) {
    if (line.empty() || line == "\r")
      continue;
    auto row = read_row(line, *places);
    if (!row)
      return make_error(errc::corrupt, fmt::format("{}, line {}: {}", file, number, render(row.error())));
    rows.push_back(std::move(*row));
  }
  return rows;
}

} // namespace ringmaster
