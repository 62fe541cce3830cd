#include "tools/validation/pretraining_recipes.hpp"

#include <algorithm>
#include <string_view>

namespace ringmaster {

using namespace training;

namespace {

constexpr double of_26_02 = 3, of_26_04 = 5, of_26_04_01 = 5.5, of_26_06 = 7, of_26_08 = 9, no_end = 1000;

struct recipe {
  std::string_view model;     ///< Empty: any.
  std::string_view systems;   ///< The begin of their names; empty: any.
  std::string_view precision; ///< Empty: any.
  double from, until;         ///< Months, `until` no more.
  experts_software software;
};

constexpr auto no_graphs = launch_graphs::none, of_parts = launch_graphs::parts, of_all = launch_graphs::whole;
constexpr bool hides = true, exposes = false; // dispatch

/// The first that applies. "gb" are the NVL72s.
constexpr recipe recipes[] = {
  {"", "gb", "mxfp8", of_26_06, no_end, {of_all, hides}},
  {"qwen3-30b-a3b", "b300", "mxfp8", of_26_06, no_end, {of_all, hides}},
  {"qwen3-235b-a22b", "b", "mxfp8", of_26_08, no_end, {of_all, hides}},
  {"deepseek-v3", "b300", "mxfp8", of_26_08, no_end, {of_all, hides}},

  {"deepseek-v3", "gb300", "fp8", of_26_02, no_end, {no_graphs, exposes}},
  {"deepseek-v3", "gb300", "mxfp8", of_26_02, no_end, {no_graphs, exposes}},
  {"deepseek-v3", "gb300", "nvfp4", of_26_02, no_end, {no_graphs, exposes}},
  {"deepseek-v3", "b200", "mxfp8", of_26_04_01, no_end, {of_parts, hides}},
  {"deepseek-v3", "b300", "", of_26_06, no_end, {of_parts, exposes}},

  {"qwen3-235b-a22b", "h100", "", 0, no_end, {no_graphs, hides}},
  {"qwen3-235b-a22b", "b200", "", 0, of_26_02, {no_graphs, hides}},
  {"qwen3-235b-a22b", "b300", "", of_26_02, of_26_04, {no_graphs, hides}},

  {"qwen3-30b-a3b", "h100", "bf16", 0, of_26_04, {of_parts, hides}},
  {"qwen3-30b-a3b", "h100", "", 0, of_26_04, {no_graphs, hides}},
  {"qwen3-30b-a3b", "h100", "bf16", of_26_04, no_end, {of_parts, exposes}},
  {"qwen3-30b-a3b", "h100", "", of_26_08, no_end, {of_parts, exposes}},
  {"qwen3-30b-a3b", "b", "", 0, no_end, {of_parts, exposes}},

  {"gpt-oss-120b", "gb200", "", 0, of_26_04, {no_graphs, exposes}},
  {"gpt-oss-120b", "gb200", "", of_26_04, no_end, {no_graphs, hides}},
  {"gpt-oss-120b", "b300", "", 0, no_end, {of_parts, exposes}},

  {"", "gb", "", 0, no_end, {of_parts, exposes}},
  {"", "", "", 0, no_end, {no_graphs, exposes}},
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

} // namespace ringmaster
