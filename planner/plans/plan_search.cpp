#include "planner/plans/plan_search.hpp"

#include "planner/plans/parallel_for.hpp"
#include "planner/plans/plan_shapes.hpp"
#include "planner/plans/shape_search.hpp"
#include "runtime/invariants/ensure.hpp"

#include <map>
#include <mutex>
#include <tuple>

namespace ringmaster::training {

namespace {

double done_part(size_t shapes, const plan_search& search) {
  ensure(shapes <= search.shapes(), "no shape is searched twice");
  return search.shapes() == 0 ? 1 : static_cast<double>(shapes) / static_cast<double>(search.shapes());
}

} // namespace

plan_search::plan_search(const plan_question& asked, size_t count) : asked_(asked) {
  ensure(asked.devices > 0 && asked.global_batch > 0, "a plan is for at least one device and one sample");
  ensure(count > 0, "a search keeps at least one plan");
  // Shapes that differ only in context and data can have plans that are the same work: they belong to one part, where
  // found_plans sees both.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_t> part_of;
  for (auto& shape : shapes_of(asked)) {
    const auto part = part_of.try_emplace({shape.shape.tensor, shape.shape.pipeline, shape.expert}, part_of.size());
    shapes_[part.first->second % parts].push_back(shape);
    ++shape_count_;
  }
  for (size_t i = 0; i < parts; ++i)
    found_.emplace_back(asked.system, count);
}

bool plan_search::run(size_t part, const std::function<bool()>& goes_on) {
  ensure(part < parts, "a search has no part of that index");
  ensure(!taken_, "no part runs after the result was taken");
  ensure(found_[part].evaluated() == 0, "a part runs once");
  shape_search search{asked_, found_[part]};
  for (auto& shape : shapes_[part]) {
    search.try_shape(shape);
    if (goes_on && !goes_on())
      return false;
  }
  return true;
}

transformer_plans plan_search::take() {
  ensure(!taken_, "the result of a search is taken once");
  taken_ = true;
  for (size_t i = 1; i < parts; ++i)
    found_[0].add(found_[i]);
  return found_[0].take();
}

transformer_plans plan_transformer(const plan_question& asked, size_t count, const plan_watch& watch) {
  plan_search search{asked, count};
  size_t done = 0;
  bool interrupted = false;
  auto goes_on = [&] { return !watch || watch(done_part(++done, search)); };
  for (size_t i = 0; i < plan_search::parts && !interrupted; ++i)
    interrupted = !search.run(i, goes_on);
  auto result = search.take();
  result.interrupted = interrupted;
  return result;
}

transformer_plans plan_in_parallel(const plan_question& asked, size_t count, const plan_watch& watch) {
  plan_search search{asked, count};
  std::mutex mutex;
  size_t done = 0;
  bool interrupted = false;
  auto goes_on = [&](size_t more) {
    std::scoped_lock lock{mutex};
    done += more;
    interrupted = interrupted || !watch(done_part(done, search));
    return !interrupted;
  };
  parallel_for(plan_search::parts, [&](size_t part) {
    if (goes_on(0))
      search.run(part, [&] { return goes_on(1); });
  });
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
