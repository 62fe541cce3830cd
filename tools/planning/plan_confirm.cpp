#include "tools/planning/plan_confirm.hpp"

#include "messages/errc.hpp"
#include "runtime/training/strategies/strategies.hpp"
#include "runtime/training/transformer/plans/transformer_costs.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint64_t plan_operations_max = 1'000'000'000; ///< Of one.
constexpr uint64_t operations_max = 100'000'000;        ///< Of all, as expected: some five seconds on two cores.

/// A strategy's run that a plan stands for, on the ranks that stand for all (transformer_costs.hpp). Where the strategy
/// itself shares weights among data-parallel ranks in a pipeline, or mirrors stages, all of these. Context and experts
/// are in the costs.
struct plan_run {
  const known_strategy* which = nullptr;
  model trained;
  mesh shape;

  plan_run(const language_model& m, const parallel_setting& how) {
    const bool all = how.zero > 1 || how.schedule == pipeline_schedule::dualpipe;
    trained.layers = places_of(m, how);
    trained.micro_batch = how.micro_batch;
    trained.chunks = how.chunks;
    trained.zero = how.zero;
    if (how.shard > 0) {
      const auto sharers = std::min(how.shard, 2u), groups = std::min(how.replicas() / how.shard, 2u);
      shape.data = sharers * groups;
      trained.shard_ranks = sharers;
      which = strategy_of(groups == 1 ? "fsdp" : "hsdp");
    } else {
      shape = {std::min(how.shape.tensor, 2u), all ? how.shape.data : std::min(how.shape.data, 2u), how.shape.pipeline};
      trained.tensor = shape.tensor;
      trained.data = shape.data;
      trained.sequence_parallel = how.sequence_parallel && shape.tensor > 1;
      which = strategy_of(name_of(how.schedule));
    }
    trained.global_batch = uint64_t{how.micro_batches()} * how.micro_batch * shape.data;
  }

  /// Expected, a little high: each layer is on one stage.
  uint64_t operations(const parallel_setting& how) const {
    return uint64_t{how.micro_batches()} * trained.layers * 10 * shape.size() / how.shape.pipeline;
  }
};

/// The best plans, some of which are simulated: as many as the operations allow, decided before any is, so that the
/// same question has the same answer.
class confirmation {
public:
  confirmation(const plan_question& asked, const std::vector<planned>& best, const std::function<bool(double)>& watch)
    : asked_(asked), watch_(watch), parts_(best.size()) {
    auto left = operations_max;
    for (auto& plan : best) {
      result.push_back({plan, {}, {}});
      runs_.emplace_back(asked.trained, plan.how);
      auto& why_not = result.back().problem;
      if (plan.how.offloads_activations)
        why_not = "activations that are off-loaded are not simulated";
      else if (plan.how.zero > 1 && plan.how.context > 1)
        why_not = "ZeRO 2 and 3 over context ranks are not simulated";
      else if (auto problem = runs_.back().which->check(runs_.back().trained, runs_.back().shape.size()))
        why_not = render(problem);
      else if (const auto count = runs_.back().operations(plan.how); count > left)
        why_not = "too many operations";
      else
        left -= count;
    }
  }

  /// On so many threads, this one among them.
  void run(uint32_t threads) {
    std::vector<std::jthread> others;
    for (uint32_t i = 1; i < threads; ++i)
      others.emplace_back([this] { take_turns(); });
    take_turns();
  }

  std::vector<confirmed_plan> result;

private:
  void take_turns() {
    for (size_t i = next_++; i < result.size(); i = next_++)
      if (result[i].problem.empty())
        simulate_one(i);
  }

  void simulate_one(size_t i) {
    auto& x = result[i];
    if (!goes_on(i, 0)) {
      x.problem = "interrupted";
      return;
    }
    const auto& [which, trained, shape] = runs_[i];
    const auto& how = x.plan.how;
    auto costs = transformer_costs(asked_.trained, asked_.system, how, shape);
    const auto expected = static_cast<double>(runs_[i].operations(how));
    auto done = simulate([&](rank& self) { return which->run(self, trained); }, trained, shape.size(), *costs, false,
                         plan_operations_max,
                         [&](uint64_t now) { return goes_on(i, static_cast<double>(now) / expected); });
    if (done)
      x.simulated = {done->end, static_cast<double>(done->ranks[done->peak_rank].peak_memory), done->operations};
    else
      x.problem = goes_on(i, 1) ? render(done.error()) : "interrupted";
  }

  bool goes_on(size_t i, double part) {
    std::scoped_lock lock{mutex_};
    parts_[i] = std::min(part, 1.0);
    wanted_ = watch_(std::accumulate(parts_.begin(), parts_.end(), 0.0) / static_cast<double>(parts_.size()))
              && wanted_;
    return wanted_;
  }

  const plan_question& asked_;
  const std::function<bool(double)>& watch_;
  std::vector<plan_run> runs_;
  std::vector<double> parts_; ///< That are done.
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  bool wanted_ = true;
};

/// What those that are simulated take, on the mean, of what their closed form says: by it the others stand among them.
double simulated_part(const std::vector<confirmed_plan>& all) {
  double sum = 0, count = 0;
  for (auto& x : all)
    if (x.simulated) {
      sum += x.simulated->seconds / x.plan.cost.seconds;
      ++count;
    }
  return count > 0 ? sum / count : 1;
}

std::vector<confirmed_plan> confirmed_ones(const plan_question& asked, const std::vector<planned>& plans,
                                           const std::function<bool(double)>& watch) {
  confirmation all{asked, plans, watch};
  all.run(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  return std::move(all.result);
}

void sort(std::vector<confirmed_plan>& all, double room) {
  const auto part = simulated_part(all);
  std::ranges::stable_sort(all, {}, [&](auto& x) {
    return std::pair{x.simulated && x.simulated->memory_bytes > room,
                     x.simulated ? x.simulated->seconds : part * x.plan.cost.seconds};
  });
}

} // namespace

std::vector<confirmed_plan> confirm_plans(const plan_question& asked, const transformer_plans& found,
                                          const std::function<bool(double)>& watch) {
  const auto room = asked.system.room_bytes();
  auto result = confirmed_ones(asked, found.best, watch);
  sort(result, room);
  if (result.empty() || !result.front().simulated)
    return result;
  std::vector<planned> faster;
  for (auto& each : found.others)
    if (each.cost.seconds < result.front().simulated->seconds)
      faster.push_back(each);
  for (auto& each : confirmed_ones(asked, faster, watch))
    if (each.simulated)
      result.push_back(std::move(each));
  sort(result, room);
  result.resize(found.best.size());
  return result;
}

} // namespace ringmaster
