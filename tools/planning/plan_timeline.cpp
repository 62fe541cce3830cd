#include "tools/planning/plan_timeline.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/output_file.hpp"
#include "tools/options/trace_limit.hpp"
#include "tools/planning/plan_text.hpp"
#include "training/pictures/stage_ranks.hpp"
#include "training/pictures/train_picture.hpp"
#include "training/pictures/train_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

std::string_view note_of(const parallel_setting& how) {
  return how.context > 1 || how.expert > 1
           ? "one GPU of each pipeline rank; what shares a sequence or experts sends is within forward and backward"
           : "one GPU of each pipeline rank";
}

/// What a pipeline rank is.
std::string_view row_of(const parallel_setting& how) {
  return how.schedule == pipeline_schedule::dualpipe ? "rank" : "stage"; // there it has two stages
}

std::string title_of(const plan_question& asked, const parallel_setting& how) {
  return fmt::format("{} on {} x {}: {}", asked.trained.name, asked.devices, asked.system.name, short_text(how));
}

} // namespace

void plan_timeline_options::add_to(option_table& table) {
  table.file("--timeline", picture)
    .says("FILE", "the best plan's step as a picture, with one GPU of each stage, which its others are like");
  table.file("--trace", trace).says("FILE", "the same for ui.perfetto.dev or chrome://tracing");
  add_trace_limit(table, trace_bytes_max)
    .says("SIZE", "how large a trace may be, at least 64K")
    .otherwise(size_text(trace_bytes_usual));
}

std::string plan_timeline_options::given() const {
  return !picture.empty() ? "--timeline" : !trace.empty() ? "--trace" : trace_bytes_max ? "--trace-limit" : "";
}

caf::error plan_timeline_options::check() const {
  if (trace_bytes_max && trace.empty())
    return make_error(errc::invalid_argument, "--trace-limit says how large a --trace may be, and there is none");
  return caf::none;
}

caf::error plan_timeline_options::write(const plan_outcome& x, const std::function<bool(double)>& watch) const {
  const auto& best = x.best.front();
  if (!best.simulated)
    return make_error(errc::invalid_argument, fmt::format("{}: the best plan, {}, cannot be shown: {}", given(),
                                                          short_text(best.plan.how), render(best.problem)));
  const plan_simulation run{x.asked, best.plan.how};
  const auto expected = static_cast<double>(run.operations());
  auto all = run.simulate(true,
                          [&](uint64_t now) { return watch(std::min(static_cast<double>(now) / expected, 1.0)); });
  if (!all)
    return with_context(given(), all.error());
  const auto found = first_of_stages(*all, run.shape());
  caf::error problem;
  if (!picture.empty())
    problem = draw(x.asked, run, found);
  if (!trace.empty() && !problem)
    problem = write_trace(run, found);
  return problem;
}

caf::error plan_timeline_options::draw(const plan_question& asked, const plan_simulation& run,
                                       const training_outcome& found) const {
  const auto costs = run.costs();
  train_run shown{run.strategy().name, run.trained(), static_cast<uint32_t>(found.ranks.size()), costs.get(),
                  asked.trained.layers};
  shown.title = title_of(asked, run.how());
  shown.note = note_of(run.how());
  shown.row = row_of(run.how());
  auto drawn = picture_of(shown, found);
  return drawn ? write_output_file(picture, *drawn, "the picture") : with_context("--timeline", drawn.error());
}

caf::error plan_timeline_options::write_trace(const plan_simulation& run, const training_outcome& found) const {
  const auto costs = run.costs();
  const traced_step step{note_of(run.how()), &found, costs.get(), row_of(run.how())};
  auto text = trace_of({&step, 1}, trace_bytes_max.value_or(trace_bytes_usual));
  return text ? write_output_file(trace, *text, "the trace")
              : make_error(code_of(text.error()), fmt::format("--trace: {} (--trace-limit)", render(text.error())));
}

} // namespace ringmaster
