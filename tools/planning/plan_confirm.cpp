#include "tools/planning/plan_confirm.hpp"

#include "messages/errc.hpp"
#include "tools/planning/in_turns.hpp"
#include "tools/planning/plan_run.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>

namespace ringmaster {

using namespace training;

namespace {

using clock = std::chrono::steady_clock;

/// What is left of the limits.
struct confirmation_room {
  uint64_t operations;
  clock::time_point until;
};

/// Plans, some of which are simulated: as many as the operations allow, decided before any is.
class confirmation {
public:
  confirmation(const plan_question& asked, const std::vector<planned>& plans, confirmation_room& room,
               const std::function<bool(double)>& watch)
    : watch_(watch), until_(room.until), done_(plans.size()) {
    runs_.reserve(plans.size());
    const auto before = room.operations;
    for (auto& plan : plans) {
      const auto share = room.operations / (plans.size() - result.size());
      result.push_back({plan, {}, {}});
      steady_.emplace_back();
      const auto& run = runs_.emplace_back(asked, plan.how);
      auto& why_not = result.back().problem;
      why_not = run.problem();
      if (!why_not)
        room.operations -= share_out(run, share);
    }
    wanted_operations_ = static_cast<double>(before - room.operations);
  }

  void run() {
    in_turns(result.size(), [this](size_t i) {
      if (!result[i].problem)
        simulate_one(i);
    });
  }

  std::vector<confirmed_plan> result;

private:
  /// Of the latest plan, whose share of the operations is known: how many it gets.
  uint64_t share_out(const plan_run& run, uint64_t share) {
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

  /// This many operations of it are done.
  bool goes_on(size_t i, uint64_t operations) {
    std::scoped_lock lock{mutex_};
    done_[i] = static_cast<double>(operations);
    const auto all = std::accumulate(done_.begin(), done_.end(), 0.0);
    interrupted_ = interrupted_ || !watch_(wanted_operations_ > 0 ? all / wanted_operations_ : 1);
    return !interrupted_ && clock::now() < until_;
  }

  caf::error why_stopped() {
    std::scoped_lock lock{mutex_};
    return interrupted_ ? make_error(errc::aborted, "interrupted") : make_error(errc::timed_out, "no time left");
  }

  const std::function<bool(double)>& watch_;
  clock::time_point until_;
  std::vector<plan_run> runs_;
  std::vector<std::optional<steady_steps>> steady_; ///< By plan; nothing: its whole step.
  std::vector<double> done_;                        ///< Operations, by plan.
  double wanted_operations_ = 0;
  std::mutex mutex_;
  bool interrupted_ = false;
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
                                           confirmation_room& room, const std::function<bool(double)>& watch) {
  confirmation all{asked, plans, room, watch};
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
                                          const std::function<bool(double)>& watch, const confirmation_limits& limits) {
  constexpr uint64_t others_part = 4; // of the operations, what is kept for the others
  const auto until = clock::now() + limits.time;
  confirmation_room room{limits.operations - limits.operations / others_part, until};
  auto result = confirmed_ones(asked, found.best, room, watch);
  sort(result, asked.system);
  if (result.empty() || !result.front().simulated)
    return result;
  std::vector<planned> faster;
  for (auto& each : found.others)
    if (each.cost.seconds < result.front().simulated->seconds)
      faster.push_back(each);
  room.operations += limits.operations / others_part;
  for (auto& each : confirmed_ones(asked, faster, room, watch))
    if (each.simulated)
      result.push_back(std::move(each));
  sort(result, asked.system);
  result.resize(found.best.size());
  return result;
}

} // namespace ringmaster
