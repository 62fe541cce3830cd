#include "runtime/schedule/schedule_run.hpp"

#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ringmaster {

caf::error schedule_run::begin(planner plan) {
  stop();
  plan_ = std::move(plan);
  round_ = 0;
  steps_before_ = 0;
  return plan_window();
}

void schedule_run::stop() {
  started_ = false;
  open_ = 0;
}

void schedule_run::forget_steps() {
  window_.steps = {};
  blocks_ = {};
}

caf::error schedule_run::plan_window() {
  TRY(planned, plan_());
  auto& steps = planned->steps;
  ensure(steps_before_ <= steps.size(), "a schedule is planned the same again");
  ensure(steps_before_ == 0 || steps_before_ == steps.size()
           || steps[steps_before_ - 1].round < steps[steps_before_].round,
         "a window ends with a round");
  auto end = std::min(steps_before_ + window_steps, steps.size());
  while (end < steps.size() && steps[end].round == steps[end - 1].round)
    ++end;
  std::map<std::pair<uint32_t, bool>, uint32_t> counts; // by peer and direction
  blocks_.clear();
  for (size_t i = 0; i < end; ++i) {
    auto block = counts[{steps[i].peer, steps[i].what == action::send}]++;
    if (i >= steps_before_)
      blocks_.push_back(block);
  }
  ensure(blocks_.size() == end - steps_before_, "each step of the window has the number of its block");
  steps_behind_ = end < steps.size();
  next_ = 0;
  window_ = {planned->rounds, planned->scratch_count,
             std::vector<step>{steps.begin() + static_cast<std::ptrdiff_t>(steps_before_),
                               steps.begin() + static_cast<std::ptrdiff_t>(end)}};
  return caf::none;
}

caf::expected<std::vector<size_t>> schedule_run::start_round() {
  if (next_ == window_.steps.size() && steps_behind_) {
    steps_before_ += next_;
    RETURN_ERROR(plan_window());
  }
  ensure(!started_, "a round starts once");
  ensure(open_ == 0, "a round starts when the one before has ended");
  ensure(next_ == window_.steps.size() || window_.steps[next_].round >= round_, "no round is skipped");
  started_ = true;
  std::vector<size_t> result;
  for (; next_ < window_.steps.size() && window_.steps[next_].round == round_; ++next_)
    if (!window_.steps[next_].then)
      result.push_back(next_);
  open_ = result.size();
  return result;
}

std::optional<size_t> schedule_run::ended(size_t index) {
  if (open_ == 0)
    return std::nullopt; // it was stopped meanwhile
  ensure(started_ && index < next_, "a step ends that was started");
  if (index + 1 < window_.steps.size() && window_.steps[index + 1].then)
    return index + 1; // in its place
  --open_;
  return std::nullopt;
}

void schedule_run::next_round() {
  ensure(started_ && open_ == 0, "a round ends with the last of its steps");
  started_ = false;
  ++round_;
  ensure(round_ <= window_.rounds || window_.rounds == 0, "a schedule has no more rounds than it says");
}

} // namespace ringmaster
