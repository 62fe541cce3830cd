#include "client/api/handles.hpp"

#include "planner/models/known_models.hpp"
#include "planner/plans/plan_search.hpp"
#include "planner/systems/gpu_system.hpp"

#include <ringmaster/plan.hpp>

#include <fmt/format.h>

namespace ringmaster::api {

std::vector<std::string> model_names() {
  std::vector<std::string> result;
  for (auto& each : training::known_models())
    result.push_back(std::string{each.name});
  return result;
}

std::vector<std::string> system_names() {
  std::vector<std::string> result;
  for (auto& each : training::known_systems())
    result.push_back(std::string{each.name});
  return result;
}

expected<std::vector<training_plan>> plan_training(const std::string& model, const std::string& system,
                                                   uint32_t devices, uint32_t global_batch, size_t count) {
  auto trained = training::model_of(model);
  if (!trained)
    return public_error(trained.error());
  auto on = training::system_of(system);
  if (!on)
    return public_error(on.error());
  if (devices == 0 || global_batch == 0)
    return error{errc::invalid_argument, "a plan needs at least one device and one sample"};
  const training::plan_question asked{std::move(*trained), std::move(*on), devices, global_batch};
  std::vector<training_plan> result;
  for (auto& each : training::plan_transformer(asked, count).best) {
    const auto& how = each.how;
    training_plan found;
    found.tensor = how.tp;
    found.context = how.cp;
    found.data = how.dp;
    found.pipeline = how.pp;
    found.iteration_s = each.cost.seconds;
    found.memory_bytes = each.cost.memory_bytes;
    found.text = fmt::format(
      "tensor {}, context {}, data {}, pipeline {}, {}, micro-batch {}, ZeRO stage {}: {:.3f} s, "
      "{:.1f} GB",
      how.tp, how.cp, how.dp, how.pp, training::name_of(how.schedule), how.micro_batch, how.zero, each.cost.seconds,
      each.cost.memory_bytes / 1e9);
    result.push_back(std::move(found));
  }
  return result;
}

} // namespace ringmaster::api
