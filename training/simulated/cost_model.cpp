#include "training/simulated/cost_model.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

caf::expected<const cost_model*> cost_model_of(std::string_view name) {
  if (name == "lab")
    return &lab_costs();
  if (name == "puzzles")
    return &puzzle_costs();
  return invalid(fmt::format("there is no cost model \"{}\"; there are: lab, puzzles", name));
}

} // namespace ringmaster::training
