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
  experts_software software;
};

constexpr auto no_graphs = launch_graphs::none, of_parts = launch_graphs::parts, of_all = launch_graphs::whole;
constexpr bool hides = true, exposes = false;    // dispatch
constexpr bool fused = true, all_to_all = false; // how it is done: by DeepEP or HybridEP, or not

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

  {"qwen3-235b-a22b", "h100", "", of_26_02_01, of_26_04, {no_graphs, hides, fused}},
  {"qwen3-235b-a22b", "h100", "", 0, no_end, {no_graphs, hides, all_to_all}},
  {"qwen3-235b-a22b", "b200", "", 0, of_26_02, {no_graphs, hides, all_to_all}},
  {"qwen3-235b-a22b", "b300", "", of_26_02, of_26_04, {no_graphs, hides, all_to_all}},
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

  {"", "gb", "", 0, no_end, {of_parts, exposes, fused}},
  {"", "", "", 0, no_end, {no_graphs, exposes, all_to_all}},
};

/// A row whose way of cutting the work is another than in its release's recipe, and whose throughput is that of the
/// next release's row, which is cut as the recipe says.
struct corrected_row {
  std::string_view model, system;
  number_format computed_in;
  double months;
  published_layout written, ran;
};

constexpr corrected_row corrected[] = {
  {"qwen3-30b-a3b", "h100-80g", number_format::fp8, 0, {2, 2, 24, 8}, {1, 2, 12, 8}},
  {"gpt-oss-120b", "b200", number_format::bf16, 0, {4, 1, 1, 8}, {4, 1, 1, 64}},
  {"llama3-70b", "gb300-nvl72", number_format::mxfp8, of_26_02_01, {2, 4, 1, 1}, {1, 4, 5, 1}},
  {"llama3-70b", "gb300-nvl72", number_format::nvfp4, of_26_02_01, {2, 1, 1, 1}, {1, 4, 5, 1}},
};

} // namespace

experts_software experts_software_of(const language_model& m, const gpu_system& on, number_format computed_in,
                                     double months) {
  return std::ranges::find_if(recipes,
                              [&](const recipe& x) {
                                return (x.model.empty() || x.model == m.name) && on.name.starts_with(x.systems)
                                       && (x.precision.empty() || x.precision == name_of(computed_in))
                                       && months >= x.from && months < x.until;
                              })
    ->software;
}

std::optional<published_layout> layout_of_recipe(const published_training& x, double months) {
  const published_layout written{x.how.micro_batch, x.how.shape.pipeline, x.how.chunks, x.how.expert};
  auto at = std::ranges::find_if(corrected, [&](const corrected_row& row) {
    return row.model == x.trained.name && row.system == x.on.name && row.computed_in == x.how.computed_in
           && row.months == months && row.written == written;
  });
  return at == std::end(corrected) ? std::nullopt : std::optional{at->ran};
}

} // namespace ringmaster
