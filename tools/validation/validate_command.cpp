#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/models/known_models.hpp"
#include "runtime/configuration/places.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "tools/console/page_format.hpp"
#include "tools/validation/iteration_rows.hpp"
#include "tools/validation/pretraining_report.hpp"
#include "tools/validation/software_rows.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

namespace ringmaster {

namespace {

using namespace training;

struct validate_options {
  std::string data; ///< Empty: what came with the program.
  gpu_system system = known_systems().front();
  bool calibrate = false;
  bool rows = false;
  bool leave_one_out = false;
  bool best = false;
  bool wide = false;

  page_format page() const { return page_format::of_console(wide); }
};

constexpr const char* trainings_file = "pretraining.csv";

struct data_set {
  std::string name;
  std::vector<measured_iteration> calibration, held_out;
};

constexpr const char* iteration_files[] = {"single.csv", "multi.csv"};
constexpr const char* iterations_set = "a100_iterations";

/// Whether the directory has the sets in folders of their own, as bench/data.
bool has_all_sets(const std::filesystem::path& place) {
  std::error_code unknown;
  return std::filesystem::is_directory(place / iterations_set, unknown);
}

/// Where a set is: in the directory of all sets, if one is given.
caf::expected<std::string> place_of(const char* set, const std::string& all_sets) {
  if (!all_sets.empty())
    return (std::filesystem::path{all_sets} / set).string();
  if (auto found = find_data(set))
    return found->string();
  return make_error(
    errc::io_error,
    fmt::format(
      "what was measured did not come with this program: --data says where it is; the source has it in bench/data/{}",
      set));
}

/// Refuses a directory in which nothing is found.
caf::error check_directory(const std::filesystem::path& place) {
  auto has = [&](const char* name) {
    std::error_code unknown;
    return std::filesystem::exists(place / name, unknown);
  };
  std::error_code unknown;
  if (!std::filesystem::is_directory(place, unknown) || has_all_sets(place) || has(trainings_file)
      || std::ranges::any_of(iteration_files, has))
    return caf::none;
  return make_error(errc::io_error, fmt::format("--data: the directory {} has none of what is read: {} and {}, or {}, "
                                                "or the folder {} and the others of bench/data",
                                                place.string(), iteration_files[0], iteration_files[1], trainings_file,
                                                iterations_set));
}

/// Whether it is a file of published trainings, and not of measured iterations.
bool has_trainings(const std::string& place) {
  std::ifstream in{place};
  std::string header;
  return std::getline(in, header) && header.find("tokens/s/gpu") != header.npos;
}

caf::expected<std::vector<data_set>> read_data(const std::string& place) {
  std::vector<std::string> files{place};
  if (std::filesystem::is_directory(place))
    files = {place + "/" + iteration_files[0], place + "/" + iteration_files[1]};
  std::vector<data_set> result;
  for (auto& file : files) {
    TRY(rows, read_iteration_rows(file));
    data_set x{std::filesystem::path{file}.filename().string(), {}, {}};
    for (size_t i = 0; i < rows->size(); ++i)
      (i % 2 == 0 ? x.calibration : x.held_out).push_back((*rows)[i]);
    result.push_back(std::move(x));
  }
  return result;
}

/// Korthikanti et al. 2022, table 5: Megatron-LM on A100 80 GB, tensor parallel 8, sequence 2048. Not used to
/// calibrate.
struct published_iteration {
  const char* model;
  uint32_t pipeline, chunks, global_batch, micro_batch;
  double full_s, selective_s; ///< Full recomputation; sequence parallel with selective recomputation.
};
constexpr published_iteration published[] = {
  {"megatron-22b", 1, 1, 4, 4, 1.42, 1.10},
  {"gpt3-175b", 8, 3, 64, 1, 18.13, 13.75},
};

measured_iteration as_measured(const published_iteration& x, recomputation again) {
  measured_iteration result;
  result.trained = *model_of(x.model);
  result.how.set_degrees(8, 1, x.pipeline);
  result.how.attention = attention_kernel::unfused;
  result.how.global_batch = x.global_batch;
  result.how.micro_batch = x.micro_batch;
  result.how.chunks = x.chunks;
  result.how.schedule = x.chunks > 1 ? pipeline_schedule::interleaved_1f1b : pipeline_schedule::one_f_one_b;
  result.how.again = again;
  result.how.sequence_parallel = again == recomputation::selective;
  result.seconds = again == recomputation::full ? x.full_s : x.selective_s;
  return result;
}

std::string percent(double x) {
  return fmt::format("{:+.1f} %", 100 * x);
}

void add_deviation(text_table& to, const std::string& what, std::span<const measured_iteration> rows,
                   const gpu_system& on) {
  if (rows.empty())
    return;
  const auto d = deviation_of(rows, on);
  to.add_row({what, fmt::to_string(d.count), fmt::format("{:.2f} %", 100 * d.mean_absolute),
              fmt::format("{:.2f} %", 100 * d.median_absolute), percent(d.mean), percent(d.worst)});
}

void print_rows(std::FILE* out, const std::vector<measured_iteration>& rows, const gpu_system& on,
                const page_format& page) {
  text_table table{{right_column("GPUs"), right_column("TP"), right_column("DP"), right_column("PP"),
                    right_column("batch"), right_column("MBS"), right_column("hidden"), right_column("layers"),
                    right_column("seq", 1), right_column("measured s"), right_column("estimate s"),
                    right_column("off")}};
  for (auto& x : rows) {
    auto& how = x.how;
    const auto estimate = estimate_of(x, on);
    std::vector<std::string> cells;
    for (auto number : {how.devices(), how.tp, how.dp, how.pp, how.global_batch, how.micro_batch, x.trained.hidden,
                        x.trained.layers, x.trained.sequence})
      cells.push_back(fmt::to_string(number));
    cells.push_back(fmt::format("{:.4f}", x.seconds));
    cells.push_back(fmt::format("{:.4f}", estimate));
    cells.push_back(percent(estimate / x.seconds - 1));
    table.add_row(std::move(cells));
  }
  fmt::print(out, "{}", table.text(page.table_columns(), "--wide shows all"));
}

void print_published(std::FILE* out, const gpu_system& on, const page_format& page) {
  text_table table{{left_column("published, not calibrated on"), left_column("recomputation"), right_column("s"),
                    right_column("estimate"), right_column("off")}};
  double sum = 0, worst = 0;
  size_t count = 0;
  for (auto& x : published)
    for (auto again : {recomputation::full, recomputation::selective}) {
      auto row = as_measured(x, again);
      const auto estimate = estimate_of(row, on), off = estimate / row.seconds - 1;
      table.add_row({x.model, again == recomputation::full ? "full" : "selective, sequence parallel",
                     fmt::format("{:.2f}", row.seconds), fmt::format("{:.2f}", estimate), percent(off)});
      sum += std::abs(off);
      worst = std::abs(off) > std::abs(worst) ? off : worst;
      ++count;
    }
  fmt::print(out, "\n{}mean of the deviations {:.2f} %, worst {}\n", table.text(page.table_columns(), ""),
             100 * sum / static_cast<double>(count), percent(worst));
}

void print_constants(std::FILE* out, const gpu_system& on) {
  json_value json{{"like", "a100-80g"}};
  for (auto& fitted : calibrated_constants())
    for (auto& x : system_constants())
      if (x.name == fitted.name)
        json[x.name] = rounded(on.*x.member, 4);
  fmt::print(out, "fitted to the first, third, ... rows:\n{}\n\n", json_text(json));
}

void print_all(std::FILE* out, const validate_options& opts, const std::vector<data_set>& data) {
  const auto page = opts.page();
  text_table table{{left_column("rows, on " + opts.system.name), right_column("count"), right_column("mean |dev.|"),
                    right_column("median", 2), right_column("bias", 1), right_column("worst")}};
  for (auto& x : data) {
    add_deviation(table, x.name + ", calibrated on", x.calibration, opts.system);
    add_deviation(table, x.name + ", held out", x.held_out, opts.system);
  }
  fmt::print(out, "{}", table.text(page.table_columns(), "--wide shows all"));
  print_published(out, opts.system, page);
  if (!opts.rows)
    return;
  for (auto& x : data)
    for (auto* part : {&x.calibration, &x.held_out}) {
      fmt::print(out, "\n{}, {}\n", x.name, part == &x.calibration ? "calibrated on" : "held out");
      print_rows(out, *part, opts.system, page);
    }
}

class validate_call final : public command_call {
  void declare(option_table& table) override {
    table.about("Compares what the transformer cost model estimates with measured and published iteration times of "
                "GPTs under Megatron-LM on A100 GPUs, and with published throughputs of models of today on H100 to "
                "GB300. Of these rows the first, third, ... were used to calibrate the constants, the others were not; "
                "of further rows of that source none was.");
    table.file("--data", opts_.data)
      .says("PLACE", "a CSV file with columns as in bench/data; or a directory with single.csv and multi.csv, or with "
                     "pretraining.csv; or one with the folders of bench/data: all sets")
      .otherwise("all sets, which came with the program");
    std::vector<std::string> systems;
    for (auto& x : known_systems())
      systems.push_back(x.name);
    table.parsed("--system", opts_.system, system_of)
      .says("S", "{words}, or a JSON file of its constants")
      .offers(std::move(systems))
      .otherwise(opts_.system.name);
    table.flag("--calibrate", opts_.calibrate)
      .says("fits the constants to the first, third, ... rows, prints them, and compares with these");
    table.flag("--rows", opts_.rows).says("every row");
    table.flag("--wide", opts_.wide)
      .says("tables show all columns; else lines have at most 100 columns (fewer where $COLUMNS says so, at least 60), "
            "and tables leave columns out");
    table.flag("--leave-one-out", opts_.leave_one_out)
      .says(
        "of the published trainings, fits to all calibrated rows but one, each in turn, and compares with that one");
    table.flag("--best", opts_.best)
      .says("each published training beside the best plan that is found for its model, GPUs and batch");
  }

  caf::expected<int> run(const console& to) override {
    RETURN_ERROR(check_directory(opts_.data));
    if (has_all_sets(opts_.data))
      all_sets_ = std::exchange(opts_.data, "");
    const bool all = opts_.data.empty();
    const bool trainings = all || has_trainings(opts_.data) || has_trainings(opts_.data + "/" + trainings_file);
    if (all || !trainings)
      RETURN_ERROR(validate_iterations(to));
    if (trainings)
      RETURN_ERROR(validate_trainings(to));
    if (all)
      RETURN_ERROR(validate_software(to));
    return exit_ok;
  }

  /// Of A100s.
  caf::error validate_iterations(const console& to) {
    TRY(place, opts_.data.empty() ? place_of(iterations_set, all_sets_) : opts_.data);
    TRY(data, read_data(*place));
    fmt::print(to.out, "measured: {}\n", *place);
    if (opts_.calibrate) {
      std::vector<measured_iteration> fitted;
      for (auto& x : *data)
        fitted.insert(fitted.end(), x.calibration.begin(), x.calibration.end());
      opts_.system = calibrate(opts_.system, fitted);
      print_constants(to.out, opts_.system);
    }
    print_all(to.out, opts_, *data);
    return caf::none;
  }

  caf::error validate_trainings(const console& to) {
    auto place = opts_.data.empty() ? place_of("gpu_pretraining", all_sets_) : opts_.data;
    if (!place)
      return std::move(place.error());
    auto file = *place;
    if (std::filesystem::is_directory(file))
      file += std::string{"/"} + trainings_file;
    TRY(rows, read_pretraining_rows(file));
    const bool split = opts_.calibrate || rows->fingerprint == calibrated_fingerprint;
    std::vector<double> values;
    for (auto& x : pretraining_constants())
      values.push_back(x.value);
    fmt::print(to.out, "{}published: {}\n", opts_.data.empty() ? "\n" : "", file);
    if (opts_.calibrate) {
      values = fit_pretraining_constants(fitted_rows(*rows));
      print_pretraining_constants(to.out, values);
    }
    print_pretraining(to.out, *rows, values, split, opts_.page());
    if (opts_.data.empty())
      RETURN_ERROR(validate_further(to, *rows, values));
    if (opts_.leave_one_out && split)
      print_left_out(to.out, fitted_rows(*rows), opts_.page());
    if (opts_.best)
      print_beside_best(to.out, *rows);
    if (opts_.rows)
      print_pretraining_rows(to.out, *rows, values, split, opts_.page());
    return caf::none;
  }

  /// Of each software generation, the trainings that it ran.
  caf::error validate_software(const console& to) {
    TRY(place, place_of("pretraining_by_software", all_sets_));
    TRY(rows, read_software_rows(*place + "/" + trainings_file));
    fmt::print(to.out, "\nby software: {}/{}\n", *place, trainings_file);
    print_software_rows(to.out, *rows, opts_.page());
    return caf::none;
  }

  caf::error validate_further(const console& to, const pretraining_rows& rows, std::span<const double> values) {
    TRY(place, place_of("gpu_pretraining_further", all_sets_));
    TRY(further, read_pretraining_rows(*place + "/" + trainings_file));
    fmt::print(to.out, "\nfurther rows of that source: {}/{}\n", *place, trainings_file);
    print_further(to.out, rows, *further, values, opts_.page());
    if (opts_.rows)
      print_pretraining_rows(to.out, *further, values, false, opts_.page());
    return caf::none;
  }

  validate_options opts_;
  std::string all_sets_; ///< A directory with the sets in folders of their own; empty: they came with the program.
};

} // namespace

tool_command validate_command() {
  return tool_command::of<validate_call>("simulate validate", "its estimates against measured steps");
}

} // namespace ringmaster
