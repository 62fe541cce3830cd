#include "tools/validation/pretraining_recipes.hpp"

#include <algorithm>
#include <string_view>

namespace ringmaster {

using namespace training;

namespace {

constexpr double of_26_02 = 3, of_26_02_01 = 3.5, of_26_04 = 5, of_26_04_01 = 5.5, of_26_06 = 7, of_26_08 = 9,
                 no_end = 1000;

struct recipe {
  std::string_view model;     ///< Empty: any.
  std::string_view systems;   ///< The begin of their names; empty: any.
  std::string_view precision; ///< Empty: any.
  double from, until;         ///< Months, `until` no more.
  training_software software;
};

constexpr auto no_graphs = launch_graphs::none, of_parts = launch_graphs::parts, of_all = launch_graphs::whole;
constexpr bool hides = true, exposes = false;    // dispatch
constexpr bool fused = true, all_to_all = false; // how it is done: by DeepEP or HybridEP, or not
constexpr bool registered = true;                // FSDP's buffers (nccl_ub)

/// The first that applies. "gb" are the NVL72s.
constexpr recipe recipes[] = {
  {"", "gb", "mxfp8", of_26_06, no_end, {of_all, hides, fused}},
  {"qwen3-30b-a3b", "b300", "mxfp8", of_26_06, no_end, {of_all, hides, fused}},
  {"qwen3-235b-a22b", "b", "mxfp8", of_26_08, no_end, {of_all, hides, fused}},
  {"deepseek-v3", "b300", "mxfp8", of_26_08, no_end, {of_all, hides, fused}},

  {"deepseek-v3", "gb300", "fp8", of_26_02, no_end, {no_graphs, exposes, fused}},
  {"deepseek-v3", "gb300", "mxfp8", of_26_02, no_end, {no_graphs, exposes, fused}},
  {"deepseek-v3", "gb300", "nvfp4", of_26_02, no_end, {no_graphs, exposes, fused}},
  {"deepseek-v3", "b200", "mxfp8", of_26_04_01, no_end, {of_parts, hides, fused}},
  {"deepseek-v3", "b300", "", of_26_04_01, no_end, {of_parts, exposes, fused}},
  {"deepseek-v3", "b", "", of_26_02, no_end, {no_graphs, exposes, fused}},
  {"deepseek-v3", "h100", "", 0, no_end, {no_graphs, hides, fused}},

  {"qwen3-235b-a22b", "h100", "", 0, no_end, {no_graphs, hides, all_to_all}},
  {"qwen3-235b-a22b", "b200", "", 0, of_26_02, {no_graphs, hides, all_to_all}},
  {"qwen3-235b-a22b", "b300", "", of_26_02, of_26_02_01, {no_graphs, hides, all_to_all}},
  {"qwen3-235b-a22b", "b300", "", of_26_04_01, no_end, {no_graphs, exposes, fused}},

  {"qwen3-30b-a3b", "h100", "bf16", 0, of_26_02, {of_parts, hides, all_to_all}},
  {"qwen3-30b-a3b", "h100", "", 0, of_26_02, {no_graphs, hides, all_to_all}},
  {"qwen3-30b-a3b", "h100", "bf16", of_26_02, of_26_02_01, {of_parts, hides, fused}},
  {"qwen3-30b-a3b", "h100", "", of_26_02, of_26_02_01, {no_graphs, hides, fused}},
  {"qwen3-30b-a3b", "h100", "bf16", of_26_02_01, no_end, {of_parts, exposes, fused}},
  {"qwen3-30b-a3b", "h100", "", of_26_02_01, of_26_08, {no_graphs, exposes, fused}},
  {"qwen3-30b-a3b", "h100", "", of_26_08, no_end, {of_parts, exposes, fused}},
  {"qwen3-30b-a3b", "b200", "", 0, of_26_02_01, {of_parts, exposes, all_to_all}},
  {"qwen3-30b-a3b", "b", "", 0, no_end, {of_parts, exposes, fused}},

  {"gpt-oss-120b", "gb200", "", 0, of_26_04, {no_graphs, exposes, all_to_all}},
  {"gpt-oss-120b", "gb200", "", of_26_04, of_26_04_01, {no_graphs, hides, fused}},
  {"gpt-oss-120b", "gb200", "", of_26_04_01, no_end, {no_graphs, hides, all_to_all}},
  {"gpt-oss-120b", "gb300", "", 0, no_end, {of_parts, exposes, all_to_all}},
  {"gpt-oss-120b", "b300", "", 0, of_26_04, {of_parts, exposes, all_to_all}},
  {"gpt-oss-120b", "b300", "", of_26_04, no_end, {of_parts, exposes, fused}},
  {"gpt-oss-120b", "b200", "", of_26_04, of_26_04_01, {no_graphs, exposes, fused}},

  {"llama3-8b", "h100", "", 0, no_end, {no_graphs, exposes, all_to_all, registered}},

  {"", "gb", "", 0, no_end, {of_parts, exposes, fused}},
  {"", "", "", 0, no_end, {no_graphs, exposes, all_to_all}},
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
  return {how.computed_in, how.micro_batch, how.shape.pipeline, how.chunks, how.expert};
}

} // namespace

training_software software_of(const language_model& m, const gpu_system& on, number_format computed_in, double months) {
  return std::ranges::find_if(recipes,
                              [&](const recipe& x) {
                                return (x.model.empty() || x.model == m.name) && on.name.starts_with(x.systems)
                                       && (x.precision.empty() || x.precision == name_of(computed_in))
                                       && months >= x.from && months < x.until;
                              })
    ->software;
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
    how.shape.pipeline = at->ran.pipeline;
    how.chunks = at->ran.chunks;
    how.expert = at->ran.expert;
    months = at->software;
  }
  x.ran = software_of(x.trained, x.on, how.computed_in, months);
}

} // namespace ringmaster
