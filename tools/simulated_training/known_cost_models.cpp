#include "tools/simulated_training/known_cost_models.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

namespace {

const known_cost_model models[] = {
  {.name = "lab", .what = "seconds, on a GPU of 1000 TFLOP/s", .laboratory = training::lab_costs},
  {.name = "puzzles", .what = "Sasha Rush's abstract units", .laboratory = training::puzzle_costs},
  {.name = "transformer", .what = "a GPT on a system, seconds and bytes"},
  {.name = "measured",
   .what = "on hosts like this one, a rank each, with the collectives' costs that `ringmaster tune` wrote into the "
           "configuration",
   .of_this_machine = true,
   .planned = false},
};

caf::expected<const known_cost_model*> parse(const std::string& text, bool planned_only) {
  auto found = std::ranges::find_if(models, [&](auto& x) { return x.name == text && (x.planned || !planned_only); });
  if (found != std::end(models))
    return &*found;
  return make_error(errc::invalid_argument, fmt::format("there is no cost model \"{}\"; there are: {}", text,
                                                        fmt::join(cost_model_names(planned_only), ", ")));
}

} // namespace

std::span<const known_cost_model> known_cost_models() {
  return models;
}

std::vector<std::string> cost_model_names(bool planned_only) {
  std::vector<std::string> result;
  for (auto& x : models)
    if (x.planned || !planned_only)
      result.emplace_back(x.name);
  return result;
}

caf::expected<const known_cost_model*> parse_cost_model(const std::string& text) {
  return parse(text, false);
}

caf::expected<const known_cost_model*> parse_planned_cost_model(const std::string& text) {
  return parse(text, true);
}

} // namespace ringmaster
