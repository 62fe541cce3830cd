#include "tools/validation/pretraining_recipes.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <string_view>

namespace ringmaster {

using namespace training;

namespace {

constexpr double of_26_02 = 3, of_26_02_01 = 3.5, of_26_04 = 5, of_26_04_01 = 5.5, of_26_06 = 7, of_26_08 = 9,
                 no_end = 1000;
constexpr std::string_view any{};

struct recipe {
  std::string_view model, systems, precision; ///< `systems`: the start of their names.
  double from, until;                         ///< Months; `until` is exclusive.
  training_software software;
};

// How software runs experts: graphs, whether dispatch hides behind other work, and whether DeepEP or HybridEP does it
// (else all_to_all). registered: with FSDP's buffers (nccl_ub).
constexpr training_software whole_graph_hidden_fused{
  .graphs = launch_graphs::whole, .hides_dispatch = true, .dispatches_fused = true},
  fused{.dispatches_fused = true},
  partial_graphs_hidden_fused{.graphs = launch_graphs::parts, .hides_dispatch = true, .dispatches_fused = true},
  partial_graphs_fused{.graphs = launch_graphs::parts, .dispatches_fused = true},
  hidden_fused{.hides_dispatch = true, .dispatches_fused = true}, hidden{.hides_dispatch = true},
  partial_graphs_hidden{.graphs = launch_graphs::parts, .hides_dispatch = true},
  partial_graphs{.graphs = launch_graphs::parts}, plain{}, registered{.registers_buffers = true};

/// The first that applies. "gb" are the NVL72s.
constexpr recipe recipes[] = {
  {any, "gb", "mxfp8", of_26_06, no_end, whole_graph_hidden_fused},
  {"qwen3-30b-a3b", "b300", "mxfp8", of_26_06, no_end, whole_graph_hidden_fused},
  {"qwen3-235b-a22b", "b", "mxfp8", of_26_08, no_end, whole_graph_hidden_fused},
  {"deepseek-v3", "b300", "mxfp8", of_26_08, no_end, whole_graph_hidden_fused},

  {"deepseek-v3", "gb300", "fp8", of_26_02, no_end, fused},
  {"deepseek-v3", "gb300", "mxfp8", of_26_02, no_end, fused},
  {"deepseek-v3", "gb300", "nvfp4", of_26_02, no_end, fused},
  {"deepseek-v3", "b200", "mxfp8", of_26_04_01, no_end, partial_graphs_hidden_fused},
  {"deepseek-v3", "b300", any, of_26_04_01, no_end, partial_graphs_fused},
  {"deepseek-v3", "b", any, of_26_02, no_end, fused},
  {"deepseek-v3", "h100", any, 0, no_end, hidden_fused},

  {"qwen3-235b-a22b", "h100", any, 0, no_end, hidden},
  {"qwen3-235b-a22b", "b200", any, 0, of_26_02, hidden},
  {"qwen3-235b-a22b", "b300", any, of_26_02, of_26_02_01, hidden},
  {"qwen3-235b-a22b", "b300", any, of_26_04_01, no_end, fused},

  {"qwen3-30b-a3b", "h100", "bf16", 0, of_26_02, partial_graphs_hidden},
  {"qwen3-30b-a3b", "h100", any, 0, of_26_02, hidden},
  {"qwen3-30b-a3b", "h100", "bf16", of_26_02, of_26_02_01, partial_graphs_hidden_fused},
  {"qwen3-30b-a3b", "h100", any, of_26_02, of_26_02_01, hidden_fused},
  {"qwen3-30b-a3b", "h100", "bf16", of_26_02_01, no_end, partial_graphs_fused},
  {"qwen3-30b-a3b", "h100", any, of_26_02_01, of_26_08, fused},
  {"qwen3-30b-a3b", "h100", any, of_26_08, no_end, partial_graphs_fused},
  {"qwen3-30b-a3b", "b200", any, 0, of_26_02_01, partial_graphs},
  {"qwen3-30b-a3b", "b", any, 0, no_end, partial_graphs_fused},

  {"gpt-oss-120b", "gb200", any, 0, of_26_04, plain},
  {"gpt-oss-120b", "gb200", any, of_26_04, of_26_04_01, hidden_fused},
  {"gpt-oss-120b", "gb200", any, of_26_04_01, no_end, hidden},
  {"gpt-oss-120b", "gb300", any, 0, no_end, partial_graphs},
  {"gpt-oss-120b", "b300", any, 0, of_26_04, partial_graphs},
  {"gpt-oss-120b", "b300", any, of_26_04, no_end, partial_graphs_fused},
  {"gpt-oss-120b", "b200", any, of_26_04, of_26_04_01, fused},

  {"llama3-8b", "h100", any, 0, no_end, registered},

  {any, "gb", any, 0, no_end, partial_graphs_fused},
  {any, any, any, 0, no_end, plain},
};

constexpr auto bf16 = number_format::bf16, fp8 = number_format::fp8, mxfp8 = number_format::mxfp8,
               nvfp4 = number_format::nvfp4;

/// A row that its release's recipe contradicts, and which row of a release before or behind, that agrees with its own,
/// has the same throughput within 6 %: the run is taken to be as that recipe has it. Or whose precision the source has
/// otherwise ("FP8-MX").
struct corrected_row {
  std::string_view model, system;
  double months;
  published_layout written, ran;
  double software; ///< Months of the recipe.
};

constexpr corrected_row corrected[] = {
  {"qwen3-30b-a3b", "h100-80g", 0, {fp8, 2, 2, 24, 8}, {fp8, 1, 2, 12, 8}, 0},
  {"qwen3-30b-a3b", "h100-80g", of_26_02, {fp8, 1, 2, 12, 8}, {fp8, 1, 2, 12, 8}, 0},
  {"qwen3-30b-a3b", "h100-80g", of_26_02_01, {fp8, 1, 2, 12, 8}, {fp8, 1, 1, 1, 16}, of_26_02_01},
  {"qwen3-235b-a22b", "b300", of_26_02_01, {mxfp8, 1, 8, 4, 8}, {mxfp8, 1, 8, 4, 8}, of_26_02},
  {"gpt-oss-120b", "b200", 0, {bf16, 4, 1, 1, 8}, {bf16, 4, 1, 1, 64}, 0},
  {"llama3-70b", "gb300-nvl72", of_26_02_01, {mxfp8, 2, 4, 1, 1}, {mxfp8, 1, 4, 5, 1}, of_26_02_01},
  {"llama3-70b", "gb300-nvl72", of_26_02_01, {nvfp4, 2, 1, 1, 1}, {nvfp4, 1, 4, 5, 1}, of_26_02_01},
  {"llama3.1-405b", "gb200-nvl72", of_26_02_01, {nvfp4, 1, 16, 4, 1}, {nvfp4, 1, 16, 8, 1}, of_26_02_01},
  {"deepseek-v3", "b200", 0, {fp8, 1, 16, 1, 8}, {mxfp8, 1, 16, 1, 8}, 0},
  {"qwen3-30b-a3b", "gb200-nvl72", 0, {fp8, 4, 1, 1, 8}, {mxfp8, 4, 1, 1, 8}, 0},
  {"qwen3-30b-a3b", "gb300-nvl72", 0, {fp8, 4, 1, 1, 8}, {mxfp8, 4, 1, 1, 8}, 0},
};

published_layout layout_of(const published_training& x) {
  auto& how = x.how;
  return {how.computed_in, how.micro_batch, how.pp, how.chunks, how.ep};
}

} // namespace

training_software software_of(const language_model& m, const gpu_system& on, number_format computed_in, double months) {
  const auto at = std::ranges::find_if(recipes, [&](const recipe& x) {
    return (x.model.empty() || x.model == m.name) && on.name.starts_with(x.systems)
           && (x.precision.empty() || x.precision == name_of(computed_in)) && months >= x.from && months < x.until;
  });
  ensure(at != std::end(recipes), "the last recipe applies to everything");
  return at->software;
}

void correct(published_training& x, double months) {
  const auto written = layout_of(x);
  auto at = std::ranges::find_if(corrected, [&](const corrected_row& row) {
    return row.model == x.trained.name && row.system == x.on.name && row.months == months && row.written == written;
  });
  x.corrected = at != std::end(corrected);
  auto& how = x.how;
  if (x.corrected) {
    how.computed_in = at->ran.computed_in;
    how.micro_batch = at->ran.micro_batch;
    how.pp = at->ran.pipeline;
    how.chunks = at->ran.chunks;
    how.ep = at->ran.expert;
    months = at->software;
  }
  x.ran = software_of(x.trained, x.on, how.computed_in, months);
}

} // namespace ringmaster
