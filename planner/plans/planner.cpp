#include "planner/plans/planner.hpp"

#include "planner/plans/plan_shapes.hpp"
#include "planner/plans/shape_search.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace ringmaster::training {

memory_lack lack_of(const planned& x, const gpu_system& on) {
  return {std::max(0.0, x.cost.memory_bytes - on.room_bytes()),
          std::max(0.0, x.cost.host_bytes - on.host_memory_bytes)};
}

plan_search::plan_search(const plan_question& asked, size_t count) : asked_(asked) {
  // Shapes that differ in context and data alone may have plans that are the same work: they are of one part.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_t> part_of;
  for (auto& shape : shapes_of(asked)) {
    const auto part = part_of.try_emplace({shape.shape.tensor, shape.shape.pipeline, shape.expert}, part_of.size());
    shapes_[part.first->second % parts].push_back(shape);
  }
  for (size_t i = 0; i < parts; ++i)
    found_.emplace_back(asked.system, count);
}

plan_search::~plan_search() = default;

size_t plan_search::shapes() const {
  size_t result = 0;
  for (auto& each : shapes_)
    result += each.size();
  return result;
}

bool plan_search::run(size_t part, const std::function<bool()>& goes_on) {
  shape_search search{asked_, found_[part]};
  for (auto& shape : shapes_[part]) {
    search.try_shape(shape);
    if (goes_on && !goes_on())
      return false;
  }
  return true;
}

transformer_plans plan_search::take() {
  for (size_t i = 1; i < parts; ++i)
    found_[0].add(found_[i]);
  return found_[0].take();
}

transformer_plans plan_transformer(const plan_question& asked, size_t count, const std::function<bool(double)>& watch) {
  plan_search search{asked, count};
  size_t done = 0;
  bool interrupted = false;
  auto goes_on = [&] { return !watch || watch(static_cast<double>(++done) / static_cast<double>(search.shapes())); };
  for (size_t i = 0; i < plan_search::parts && !interrupted; ++i)
    interrupted = !search.run(i, goes_on);
  auto result = search.take();
  result.interrupted = interrupted;
  return result;
}

size_t shapes_tried(const plan_question& asked) {
  return shapes_of(asked).size();
}

bool any_plan(const plan_question& asked, bool that_fits) {
  found_plans found{asked.system, 1};
  shape_search search{asked, found};
  for (auto& shape : shapes_of(asked)) {
    search.try_shape(shape);
    if ((that_fits ? found.fitting() : found.evaluated()) > 0)
      return true;
  }
  return false;
}

} // namespace ringmaster::training
