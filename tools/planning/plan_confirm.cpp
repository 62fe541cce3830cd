#include "tools/planning/plan_confirm.hpp"

#include "messages/errc.hpp"
#include "tools/planning/in_turns.hpp"
#include "tools/planning/plan_run.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint64_t operations_max = 60'000'000; ///< Of all, as expected: some five seconds on two cores.

/// The best plans, some of which are simulated: as many as the operations allow, decided before any is, so that the
/// same question has the same answer.
class confirmation {
public:
  confirmation(const plan_question& asked, const std::vector<planned>& best, const std::function<bool(double)>& watch)
    : watch_(watch), done_(best.size()) {
    auto left = operations_max;
    for (auto& plan : best) {
      result.push_back({plan, {}, {}});
      const auto& run = runs_.emplace_back(asked, plan.how);
      auto& why_not = result.back().problem;
      why_not = run.problem();
      if (!why_not.empty())
        continue;
      if (const auto count = run.operations(); count > left)
        why_not = "too many operations";
      else
        left -= count;
    }
    wanted_operations_ = static_cast<double>(operations_max - left);
  }

  void run() {
    in_turns(result.size(), [this](size_t i) {
      if (result[i].problem.empty())
        simulate_one(i);
    });
  }

  std::vector<confirmed_plan> result;

private:
  void simulate_one(size_t i) {
    auto& x = result[i];
    if (!goes_on(i, 0)) {
      x.problem = "interrupted";
      return;
    }
    const auto expected = runs_[i].operations();
    auto done = runs_[i].simulate(false, [&](uint64_t now) { return goes_on(i, std::min(now, expected)); });
    if (done)
      x.simulated = {done->end, static_cast<double>(done->ranks[done->peak_rank].peak_memory), done->operations};
    else
      x.problem = goes_on(i, expected) ? render(done.error()) : "interrupted";
  }

  /// So many operations of it are done.
  bool goes_on(size_t i, uint64_t operations) {
    std::scoped_lock lock{mutex_};
    done_[i] = static_cast<double>(operations);
    const auto all = std::accumulate(done_.begin(), done_.end(), 0.0);
    wanted_ = watch_(wanted_operations_ > 0 ? all / wanted_operations_ : 1) && wanted_;
    return wanted_;
  }

  const std::function<bool(double)>& watch_;
  std::vector<plan_run> runs_;
  std::vector<double> done_; ///< Operations, by plan.
  double wanted_operations_ = 0;
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
  all.run();
  return std::move(all.result);
}

void sort(std::vector<confirmed_plan>& all, const gpu_system& on) {
  const auto part = simulated_part(all);
  std::ranges::stable_sort(all, {}, [&](auto& x) {
    return std::pair{x.simulated && !x.simulated->fits(on),
                     x.simulated ? x.simulated->seconds : part * x.plan.cost.seconds};
  });
}

} // namespace

std::vector<confirmed_plan> confirm_plans(const plan_question& asked, const transformer_plans& found,
                                          const std::function<bool(double)>& watch) {
  auto result = confirmed_ones(asked, found.best, watch);
  sort(result, asked.system);
  if (result.empty() || !result.front().simulated)
    return result;
  std::vector<planned> faster;
  for (auto& each : found.others)
    if (each.cost.seconds < result.front().simulated->seconds)
      faster.push_back(each);
  for (auto& each : confirmed_ones(asked, faster, watch))
    if (each.simulated)
      result.push_back(std::move(each));
  sort(result, asked.system);
  result.resize(found.best.size());
  return result;
}

} // namespace ringmaster
