#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/drawing/chart.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/console/output_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

namespace ringmaster {

namespace {

struct chart_options {
  std::vector<std::string> files;
  std::string svg;
  bool busbw = false;
};

/// The rows of all files.
struct measurements {
  std::string title;                                                     ///< "all_reduce on 8 devices".
  std::vector<std::string> algorithms;                                   ///< As they came.
  std::map<std::string, std::map<uint64_t, std::vector<double>>> values; ///< By algorithm and size.
};

caf::error add_row(measurements& all, const json_field& row, const std::string& what) {
  auto kind = row.at("kind").text(), algorithm = row.at("algorithm").text();
  auto devices = row.at("devices").number(json_field::exact_max), size = row.at("size").number(json_field::exact_max);
  auto value = row.at(what).positive();
  for (auto* problem : {kind ? nullptr : &kind.error(), algorithm ? nullptr : &algorithm.error(),
                        devices ? nullptr : &devices.error(), size ? nullptr : &size.error()})
    if (problem != nullptr)
      return std::move(*problem);
  auto title = fmt::format("{} on {} devices", *kind, *devices);
  if (all.title.empty())
    all.title = title;
  if (title != all.title)
    return row.wrong(fmt::format("{}, as in the first row: a picture has one kind and number of devices", all.title));
  if (*size == 0)
    return caf::none;
  if (!value)
    return std::move(value.error());
  if (std::find(all.algorithms.begin(), all.algorithms.end(), *algorithm) == all.algorithms.end())
    all.algorithms.push_back(*algorithm);
  all.values[*algorithm][*size].push_back(*value);
  return caf::none;
}

caf::error read(measurements& all, const std::string& file, const std::string& what) {
  if (std::error_code ignored; std::filesystem::is_directory(file, ignored))
    return malformed(fmt::format("{}: it is a directory, not a file of rows", file));
  std::ifstream stream{file};
  if (!stream)
    return make_error(errc::io_error, fmt::format("cannot read '{}': {}", file, std::strerror(errno)));
  std::string text;
  for (uint64_t line = 1; std::getline(stream, text); ++line) {
    auto value = parse_json(text);
    if (!value)
      return malformed(fmt::format("{}, line {}: {}; each line must be one object, as bench --json writes them", file,
                                   line, render(value.error())));
    if (auto problem = add_row(all, json_field{fmt::format("{}, line {}", file, line), *value}, what))
      return malformed(render(problem));
  }
  return caf::none;
}

chart chart_of(const measurements& all, bool busbw) {
  chart result;
  result.title = all.title;
  result.axis = busbw ? "bus bandwidth" : "time of an operation";
  result.unit = busbw ? chart_unit::gigabytes_per_second : chart_unit::microseconds;
  size_t runs = SIZE_MAX;
  for (auto& name : all.algorithms) {
    chart_line line{name, {}};
    for (auto [size, values] : all.values.at(name)) {
      runs = std::min(runs, values.size());
      auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
      std::nth_element(values.begin(), middle, values.end());
      line.points.push_back({size, *middle});
    }
    result.lines.push_back(std::move(line));
  }
  result.remark = fmt::format("{}, results checked; {}", runs > 1 ? fmt::format("medians of {} runs", runs) : "one run",
                              busbw ? "higher is better" : "lower is better");
  return result;
}

class chart_call final : public command_call {
  void declare(option_table& table) override {
    table.about("Draws what `ringmaster bench --json FILE` has measured: a line for each algorithm, over the size. "
                "Where several rows have the same algorithm and size, as from several runs, it takes the median. All "
                "rows must be of one kind, with the same number of devices; rows of size 0 are left out.");
    table.positional("FILE", [this](const std::string& file) { return opts_.files.push_back(file), caf::error{}; })
      .offers_files()
      .needed()
      .many();
    table.file("--svg", opts_.svg).says("PICTURE", "where the picture goes, as SVG").needed();
    table.flag("--busbw", opts_.busbw).says("bus bandwidth, in place of time");
  }

  caf::error check() override {
    if (opts_.files.empty() || opts_.svg.empty())
      return invalid("it takes a FILE and --svg PICTURE; see ringmaster chart --help");
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    measurements all;
    for (auto& file : opts_.files)
      RETURN_ERROR(read(all, file, opts_.busbw ? "busbw" : "time"));
    if (all.algorithms.empty())
      return malformed("there is no row with a size above 0");
    RETURN_ERROR(write_output_file(opts_.svg, svg_of(chart_of(all, opts_.busbw)), "the picture"));
    fmt::print(to.out, "Wrote {}.\n", opts_.svg);
    return exit_ok;
  }

  chart_options opts_;
};

} // namespace

tool_command chart_command() {
  return tool_command::of<chart_call>("chart", "what bench has measured, as a picture");
}

} // namespace ringmaster
