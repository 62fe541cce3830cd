#include "planner/search/plan_confirmation.hpp"

#include "messages/errc.hpp"
#include "planner/plans/parallel_for.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace ringmaster::training {

namespace {

using clock = std::chrono::steady_clock;

/// What is left of the limits.
struct confirmation_budget {
  uint64_t operations;
  clock::time_point until;
};

/// Simulates a list of plans. Which of them, and how, is decided by the budget before the first one starts.
class confirmation {
public:
  confirmation(const plan_question& asked, const std::vector<planned>& plans, confirmation_budget& budget,
               const plan_watch& watch)
    : watch_(watch), until_(budget.until), done_(plans.size()) {
    runs_.reserve(plans.size());
    const auto before = budget.operations;
    for (auto& plan : plans) {
      const auto share = budget.operations / (plans.size() - result.size());
      result.push_back({plan, {}, {}});
      steady_.emplace_back();
      const auto& run = runs_.emplace_back(asked, plan.how);
      auto& why_not = result.back().problem;
      why_not = run.problem();
      if (why_not)
        continue;
      const auto taken = operations_within(share, run);
      ensure(taken <= budget.operations, "a plan takes at most its share of the operations");
      budget.operations -= taken;
    }
    wanted_operations_ = static_cast<double>(before - budget.operations);
    ensure(runs_.size() == plans.size() && steady_.size() == plans.size() && done_.size() == plans.size(),
           "each plan has its own simulation");
  }

  void run() {
    parallel_for(result.size(), [this](size_t i) {
      if (!result[i].problem)
        simulate_one(i);
    });
    for (auto& x : result)
      ensure(x.simulated.has_value() == !x.problem, "a plan is simulated, or has the reason why it is not");
  }

  std::vector<confirmed_plan> result;

private:
  /// The operations that the latest plan takes of its share: of the whole step, else of two shorter ones.
  uint64_t operations_within(uint64_t share, const plan_simulation& run) {
    if (run.operations() <= share)
      return run.operations();
    steady_.back() = run.steady();
    if (steady_.back() && run.operations(*steady_.back()) <= share)
      return run.operations(*steady_.back());
    result.back().problem = make_error(errc::too_many, "too many operations");
    return 0;
  }

  void simulate_one(size_t i) {
    auto& x = result[i];
    const auto& steady = steady_[i];
    const auto expected = steady ? runs_[i].operations(*steady) : runs_[i].operations();
    auto watch = [&](uint64_t now) { return goes_on(i, std::min(now, expected)); };
    if (!watch(0)) {
      x.problem = why_stopped();
      return;
    }
    auto done = steady ? runs_[i].simulate_steady(*steady, watch) : runs_[i].simulate_all(watch);
    if (done)
      x.simulated = *done;
    else
      x.problem = watch(expected) ? done.error() : why_stopped();
  }

  /// `operations` of plan i are done.
  bool goes_on(size_t i, uint64_t operations) {
    std::scoped_lock lock{mutex_};
    done_[i] = static_cast<double>(operations);
    const auto all = std::accumulate(done_.begin(), done_.end(), 0.0);
    ensure(all <= wanted_operations_, "no more operations are done than were given out");
    interrupted_ = interrupted_ || !watch_(wanted_operations_ > 0 ? all / wanted_operations_ : 1);
    return !interrupted_ && clock::now() < until_;
  }

  caf::error why_stopped() {
    std::scoped_lock lock{mutex_};
    return interrupted_ ? make_error(errc::aborted, "interrupted") : make_error(errc::timed_out, "no time left");
  }

  const plan_watch& watch_;
  clock::time_point until_;
  std::vector<plan_simulation> runs_;
  std::vector<std::optional<steady_steps>> steady_; ///< By plan; nothing: its whole step.
  std::vector<double> done_;                        ///< Operations, by plan.
  double wanted_operations_ = 0;
  std::mutex mutex_;
  bool interrupted_ = false;
};

/// The mean ratio of simulated time to closed form.
double simulated_ratio(const std::vector<confirmed_plan>& all) {
  double sum = 0, count = 0;
  for (auto& x : all)
    if (x.simulated) {
      sum += x.simulated->seconds / x.plan.cost.seconds;
      ++count;
    }
  const auto result = count > 0 ? sum / count : 1;
  ensure(result > 0, "simulated steps take time");
  return result;
}

std::vector<confirmed_plan> confirm(const plan_question& asked, const std::vector<planned>& plans,
                                    confirmation_budget& budget, const plan_watch& watch) {
  confirmation all{asked, plans, budget, watch};
  all.run();
  return std::move(all.result);
}

void sort(std::vector<confirmed_plan>& all, const gpu_system& on) {
  const auto ratio = simulated_ratio(all);
  std::ranges::stable_sort(all, {}, [&](auto& x) {
    return std::pair{x.simulated && !x.simulated->fits(on),
                     x.simulated ? x.simulated->seconds : ratio * x.plan.cost.seconds};
  });
}

} // namespace

confirmation_counts counts_of(const std::vector<confirmed_plan>& best) {
  confirmation_counts result;
  for (auto& x : best)
    ++(!x.simulated ? result.closed_form : x.by_shorter_steps() ? result.by_shorter_steps : result.whole);
  ensure(result.whole + result.by_shorter_steps + result.closed_form == best.size(), "each plan is counted once");
  return result;
}

std::vector<confirmed_plan> confirm_plans(const plan_question& asked, const transformer_plans& found,
                                          const plan_watch& watch, const confirmation_limits& limits) {
  constexpr uint64_t others_part = 4; // a quarter of the operations is kept for the others
  confirmation_budget budget{limits.operations - limits.operations / others_part, clock::now() + limits.time};
  auto result = confirm(asked, found.best, budget, watch);
  sort(result, asked.system);
  if (result.empty() || !result.front().simulated)
    return result;
  std::vector<planned> faster;
  for (auto& each : found.others)
    if (each.cost.seconds < result.front().simulated->seconds)
      faster.push_back(each);
  budget.operations += limits.operations / others_part;
  for (auto& each : confirm(asked, faster, budget, watch))
    if (each.simulated)
      result.push_back(std::move(each));
  sort(result, asked.system);
  ensure(result.size() >= found.best.size(), "no plan is lost by confirming");
  result.resize(found.best.size());
  return result;
}

} // namespace ringmaster::training
