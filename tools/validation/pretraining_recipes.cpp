#include "tools/validation/pretraining_recipes.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <string_view>

namespace ringmaster {

using namespace training;

namespace {

constexpr double of_26_02 = 3, of_26_02_01 = 3.5, of_26_04 = 5, of_26_04_01 = 5.5, of_26_06 = 7, of_26_08 = 9,
                 no_end = 1000;

struct recipe {
  std::string_view model{};     ///< Empty: any.
  std::string_view systems{};   ///< The start of their names; empty: any.
  std::string_view precision{}; ///< Empty: any.
  double from = 0;              ///< Months.
  double until = no_end;        ///< Months, exclusive.
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
  {.systems = "gb", .precision = "mxfp8", .from = of_26_06, .software = whole_graph_hidden_fused},
  {.model = "qwen3-30b-a3b",
   .systems = "b300",
   .precision = "mxfp8",
   .from = of_26_06,
   .software = whole_graph_hidden_fused},
  {.model = "qwen3-235b-a22b",
   .systems = "b",
   .precision = "mxfp8",
   .from = of_26_08,
   .software = whole_graph_hidden_fused},
  {.model = "deepseek-v3",
   .systems = "b300",
   .precision = "mxfp8",
   .from = of_26_08,
   .software = whole_graph_hidden_fused},

  {.model = "deepseek-v3", .systems = "gb300", .precision = "fp8", .from = of_26_02, .software = fused},
  {.model = "deepseek-v3", .systems = "gb300", .precision = "mxfp8", .from = of_26_02, .software = fused},
  {.model = "deepseek-v3", .systems = "gb300", .precision = "nvfp4", .from = of_26_02, .software = fused},
  {.model = "deepseek-v3",
   .systems = "b200",
   .precision = "mxfp8",
   .from = of_26_04_01,
   .software = partial_graphs_hidden_fused},
  {.model = "deepseek-v3", .systems = "b300", .from = of_26_04_01, .software = partial_graphs_fused},
  {.model = "deepseek-v3", .systems = "b", .from = of_26_02, .software = fused},
  {.model = "deepseek-v3", .systems = "h100", .software = hidden_fused},

  {.model = "qwen3-235b-a22b", .systems = "h100", .software = hidden},
  {.model = "qwen3-235b-a22b", .systems = "b200", .until = of_26_02, .software = hidden},
  {.model = "qwen3-235b-a22b", .systems = "b300", .from = of_26_02, .until = of_26_02_01, .software = hidden},
  {.model = "qwen3-235b-a22b", .systems = "b300", .from = of_26_04_01, .software = fused},

  {.model = "qwen3-30b-a3b",
   .systems = "h100",
   .precision = "bf16",
   .until = of_26_02,
   .software = partial_graphs_hidden},
  {.model = "qwen3-30b-a3b", .systems = "h100", .until = of_26_02, .software = hidden},
  {.model = "qwen3-30b-a3b",
   .systems = "h100",
   .precision = "bf16",
   .from = of_26_02,
   .until = of_26_02_01,
   .software = partial_graphs_hidden_fused},
  {.model = "qwen3-30b-a3b", .systems = "h100", .from = of_26_02, .until = of_26_02_01, .software = hidden_fused},
  {.model = "qwen3-30b-a3b",
   .systems = "h100",
   .precision = "bf16",
   .from = of_26_02_01,
   .software = partial_graphs_fused},
  {.model = "qwen3-30b-a3b", .systems = "h100", .from = of_26_02_01, .until = of_26_08, .software = fused},
  {.model = "qwen3-30b-a3b", .systems = "h100", .from = of_26_08, .software = partial_graphs_fused},
  {.model = "qwen3-30b-a3b", .systems = "b200", .until = of_26_02_01, .software = partial_graphs},
  {.model = "qwen3-30b-a3b", .systems = "b", .software = partial_graphs_fused},

  {.model = "gpt-oss-120b", .systems = "gb200", .until = of_26_04, .software = plain},
  {.model = "gpt-oss-120b", .systems = "gb200", .from = of_26_04, .until = of_26_04_01, .software = hidden_fused},
  {.model = "gpt-oss-120b", .systems = "gb200", .from = of_26_04_01, .software = hidden},
  {.model = "gpt-oss-120b", .systems = "gb300", .software = partial_graphs},
  {.model = "gpt-oss-120b", .systems = "b300", .until = of_26_04, .software = partial_graphs},
  {.model = "gpt-oss-120b", .systems = "b300", .from = of_26_04, .software = partial_graphs_fused},
  {.model = "gpt-oss-120b", .systems = "b200", .from = of_26_04, .until = of_26_04_01, .software = fused},

  {.model = "llama3-8b", .systems = "h100", .software = registered},

  {.systems = "gb", .software = partial_graphs_fused},
  {.software = plain},
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
  {.model = "qwen3-30b-a3b",
   .system = "h100-80g",
   .months = 0,
   .written = {.computed_in = fp8, .micro_batch = 2, .pipeline = 2, .chunks = 24, .expert = 8},
   .ran = {.computed_in = fp8, .micro_batch = 1, .pipeline = 2, .chunks = 12, .expert = 8},
   .software = 0},
  {.model = "qwen3-30b-a3b",
   .system = "h100-80g",
   .months = of_26_02,
   .written = {.computed_in = fp8, .micro_batch = 1, .pipeline = 2, .chunks = 12, .expert = 8},
   .ran = {.computed_in = fp8, .micro_batch = 1, .pipeline = 2, .chunks = 12, .expert = 8},
   .software = 0},
  {.model = "qwen3-30b-a3b",
   .system = "h100-80g",
   .months = of_26_02_01,
   .written = {.computed_in = fp8, .micro_batch = 1, .pipeline = 2, .chunks = 12, .expert = 8},
   .ran = {.computed_in = fp8, .micro_batch = 1, .pipeline = 1, .chunks = 1, .expert = 16},
   .software = of_26_02_01},
  {.model = "qwen3-235b-a22b",
   .system = "b300",
   .months = of_26_02_01,
   .written = {.computed_in = mxfp8, .micro_batch = 1, .pipeline = 8, .chunks = 4, .expert = 8},
   .ran = {.computed_in = mxfp8, .micro_batch = 1, .pipeline = 8, .chunks = 4, .expert = 8},
   .software = of_26_02},
  {.model = "gpt-oss-120b",
   .system = "b200",
   .months = 0,
   .written = {.computed_in = bf16, .micro_batch = 4, .pipeline = 1, .chunks = 1, .expert = 8},
   .ran = {.computed_in = bf16, .micro_batch = 4, .pipeline = 1, .chunks = 1, .expert = 64},
   .software = 0},
  {.model = "llama3-70b",
   .system = "gb300-nvl72",
   .months = of_26_02_01,
   .written = {.computed_in = mxfp8, .micro_batch = 2, .pipeline = 4, .chunks = 1, .expert = 1},
   .ran = {.computed_in = mxfp8, .micro_batch = 1, .pipeline = 4, .chunks = 5, .expert = 1},
   .software = of_26_02_01},
  {.model = "llama3-70b",
   .system = "gb300-nvl72",
   .months = of_26_02_01,
   .written = {.computed_in = nvfp4, .micro_batch = 2, .pipeline = 1, .chunks = 1, .expert = 1},
   .ran = {.computed_in = nvfp4, .micro_batch = 1, .pipeline = 4, .chunks = 5, .expert = 1},
   .software = of_26_02_01},
  {.model = "llama3.1-405b",
   .system = "gb200-nvl72",
   .months = of_26_02_01,
   .written = {.computed_in = nvfp4, .micro_batch = 1, .pipeline = 16, .chunks = 4, .expert = 1},
   .ran = {.computed_in = nvfp4, .micro_batch = 1, .pipeline = 16, .chunks = 8, .expert = 1},
   .software = of_26_02_01},
  {.model = "deepseek-v3",
   .system = "b200",
   .months = 0,
   .written = {.computed_in = fp8, .micro_batch = 1, .pipeline = 16, .chunks = 1, .expert = 8},
   .ran = {.computed_in = mxfp8, .micro_batch = 1, .pipeline = 16, .chunks = 1, .expert = 8},
   .software = 0},
  {.model = "qwen3-30b-a3b",
   .system = "gb200-nvl72",
   .months = 0,
   .written = {.computed_in = fp8, .micro_batch = 4, .pipeline = 1, .chunks = 1, .expert = 8},
   .ran = {.computed_in = mxfp8, .micro_batch = 4, .pipeline = 1, .chunks = 1, .expert = 8},
   .software = 0},
  {.model = "qwen3-30b-a3b",
   .system = "gb300-nvl72",
   .months = 0,
   .written = {.computed_in = fp8, .micro_batch = 4, .pipeline = 1, .chunks = 1, .expert = 8},
   .ran = {.computed_in = mxfp8, .micro_batch = 4, .pipeline = 1, .chunks = 1, .expert = 8},
   .software = 0},
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
