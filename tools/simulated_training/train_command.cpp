#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/console/output_file.hpp"
#include "tools/console/progress.hpp"
#include "tools/simulated_training/train_options.hpp"
#include "tools/simulated_training/train_report.hpp"
#include "training/pictures/train_picture.hpp"
#include "training/search/strategy_search.hpp"
#include "training/simulated/simulator.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace ringmaster {

namespace {

using namespace training;

constexpr uint64_t train_operations_max = 1'000'000'000;

/// `watch` is given the finished part.
caf::expected<training_outcome> simulated(const train_options& x, const std::function<void(double part)>& watch) {
  const bool with_events = !x.trace.empty() || !x.svg.empty();
  const auto expected = static_cast<double>(operations_expected(*x.which, x.trained, x.ranks));
  return simulate([&](rank& self) { return x.which->run(self, x.trained); }, x.trained, x.ranks, *x.costs, with_events,
                  train_operations_max,
                  [&](uint64_t operations) {
                    watch(static_cast<double>(operations) / expected);
                    return true;
                  });
}

train_run about(const train_options& x) {
  return {x.which->name,
          x.trained,
          x.ranks,
          x.costs,
          x.trained.layers - x.places_beside,
          !x.micro_batch && x.which->cut != batch_cut::always};
}

/// Simulates all strategies with the same options: a table, or a list in JSON.
int compare(const train_options& opts, std::FILE* out) {
  train_comparison side_by_side;
  std::string list; ///< JSON, an object a line.
  progress shown{"simulate train"};
  const auto whole = static_cast<double>(strategies().size());
  double done = 0;
  for (auto& which : strategies()) {
    auto its = opts;
    its.which = &which;
    its.one_of_all = true;
    auto problem = its.check_one();
    auto found = problem ? caf::expected<training_outcome>{std::move(problem)}
                         : simulated(its, [&](double part) { shown.at((done + part) / whole); });
    ++done;
    if (found) {
      side_by_side.add(about(its), *found);
      for (auto& option : its.left_out)
        side_by_side.left_out(which.name, option);
    } else {
      side_by_side.add(which.name, found.error());
    }
    list += (list.empty() ? "[" : ",\n")
            + json_text(found ? json_of(about(its), *found)
                              : json_value{{"strategy", which.name}, {"error", render(found.error())}});
  }
  shown.print(out, opts.json ? list + "]\n" : side_by_side.text(page_format::of_console(opts.wide)));
  return side_by_side.any() ? exit_ok : exit_failed;
}

/// The files that are asked for beside the report.
caf::error write_files(const train_options& opts, const training_outcome& found) {
  if (!opts.trace.empty()) {
    auto trace = trace_of(found, *opts.costs, opts.trace_bytes_max.value_or(trace_bytes_usual));
    if (!trace)
      return with_context("--trace-limit", trace.error());
    RETURN_ERROR(write_output_file(opts.trace, *trace, "the trace"));
  }
  if (opts.svg.empty())
    return caf::none;
  auto picture = picture_of(about(opts), found);
  return picture ? write_output_file(opts.svg, *picture, "the picture") : std::move(picture.error());
}

class train_call final : public command_call {
  void declare(option_table& table) override { opts_.add_to(table); }
  caf::error check() override { return opts_.check(); }

  caf::expected<int> run(const console& to) override {
    if (opts_.all)
      return compare(opts_, to.out);
    TRY(found, simulated_alone());
    RETURN_ERROR(write_files(opts_, *found));
    if (opts_.json) {
      fmt::print(to.out, "{}\n", json_text(json_of(about(opts_), *found)));
      return exit_ok;
    }
    fmt::print(to.out, "{}", report_of(about(opts_), *found));
    if (!opts_.trace.empty())
      fmt::print(to.out, "Wrote {}: open it in ui.perfetto.dev or chrome://tracing.\n", opts_.trace);
    if (!opts_.svg.empty())
      fmt::print(to.out, "Wrote {}.\n", opts_.svg);
    return exit_ok;
  }

  caf::expected<training_outcome> simulated_alone() const {
    progress shown{"simulate train"};
    auto watch = [&](double part) { shown.at(part); };
    auto found = simulated(opts_, watch);
    auto bare = opts_;
    bare.trace.clear();
    bare.svg.clear();
    if (found || (opts_.trace.empty() && opts_.svg.empty()) || !simulated(bare, watch))
      return found;
    // What it does is right, but too much to be kept.
    return make_error(errc::out_of_range,
                      fmt::format("{}: {}; --trace-limit, the size of the file, does not change that",
                                  opts_.trace.empty() ? "--svg" : "--trace", render(found.error())));
  }

  train_options opts_;
};

} // namespace

tool_command train_command() {
  return tool_command::of<train_call>("simulate train", "a step of training in virtual time");
}

} // namespace ringmaster
