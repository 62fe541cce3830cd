#include "planner/failures/failure_simulation.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

constexpr double events_max = 1e8;      ///< Checkpoints and failures.
constexpr double comparisons_max = 4e9; ///< Each failure looks for the next among all hosts.

class failing_run {
public:
  failing_run(const failure_question& asked, recovery how, double interval_s, uint64_t seed, double life_shape)
    : asked_(asked), how_(how), interval_s_(interval_s),
      hosts_(hosts_of(asked) + (how == recovery::restart ? 0 : asked.spares), how == recovery::restart,
             {host_mttf_s(asked), life_shape}, asked.repair_s, seed) {
    count_copies();
    begin_training();
  }

  failure_history play() {
    while (now_ < asked_.run_s) {
      const auto failure = now_ + hosts_.until_failure();
      const auto next = std::min({failure, hosts_.next_return(), phase_end_, asked_.run_s});
      ensure(next >= now_, "time does not run backwards");
      spend(next - now_);
      now_ = next;
      if (next == asked_.run_s)
        break;
      if (next == failure)
        fail();
      else if (next == hosts_.next_return())
        take_back();
      else
        end_phase();
    }
    ensure(std::abs(history_.sum_s() - asked_.run_s) <= 1e-6 * asked_.run_s, "the times of a run add up to its length");
    return history_;
  }

private:
  enum class phase : uint8_t {
    training,
    writing,       ///< A checkpoint, since the interval is over.
    writing_early, ///< One, to restart with more copies.
    stopped,       ///< Training begins when it ends.
    waiting,
  };

  /// Training that a failure of all copies would lose.
  struct progress {
    double seconds = 0, work_s = 0;
  };

  void spend(double seconds) {
    if (copies_ > 0)
      hosts_.work(seconds);
    if (copies_ > 0 && copies_ < asked_.copies)
      history_.smaller_s += seconds;
    switch (phase_) {
      case phase::training:
        history_.kept_s += seconds;
        history_.work_s += seconds * speed_;
        unsaved_.seconds += seconds;
        unsaved_.work_s += seconds * speed_;
        if (how_ == recovery::shrink)
          step_done_s_ = std::fmod(step_done_s_ + seconds, step_s());
        break;
      case phase::writing:
      case phase::writing_early: history_.writing_s += seconds; break;
      case phase::stopped: history_.stopped_s += seconds; break;
      case phase::waiting: history_.waiting_s += seconds;
    }
  }

  void fail() {
    const auto before = copies_;
    ++history_.interruptions;
    hosts_.fail(now_);
    count_copies();
    ensure(copies_ <= before, "a failure adds no copy");
    if (how_ == recovery::shrink && survives(asked_, before)) {
      const auto seconds = std::min(step_done_s_, unsaved_.seconds);
      lose({seconds, seconds * speed_});
      stop_for(asked_.detection_s + (copies_ == before ? asked_.join_s : 0));
    } else {
      ++history_.rollbacks;
      lose(unsaved_);
      restart();
    }
    step_done_s_ = 0;
  }

  void take_back() {
    const auto before = copies_;
    hosts_.take_back();
    count_copies();
    ensure(copies_ >= before, "a host that comes back takes no copy away");
    if (copies_ == before)
      return;
    if (phase_ == phase::waiting)
      restart();
    else if (how_ == recovery::shrink)
      join();
    else if (phase_ == phase::training)
      enter(phase::writing_early, asked_.checkpoint_write_s);
    else if (phase_ == phase::writing)
      phase_ = phase::writing_early;
    // In a restart, they restart with the others.
  }

  void join() {
    if (phase_ == phase::stopped) {
      phase_end_ += asked_.join_s;
      return;
    }
    joining_ = true;
    if (phase_ == phase::training)
      phase_end_ = std::min(phase_end_, now_ + step_s() - step_done_s_);
  }

  void end_phase() {
    if (phase_ == phase::stopped)
      return begin_training();
    if (phase_ == phase::training && joining_) {
      step_done_s_ = 0;
      return begin_training();
    }
    if (phase_ == phase::training)
      return enter(phase::writing, asked_.checkpoint_write_s);
    ++history_.checkpoints;
    unsaved_ = {};
    if (phase_ == phase::writing)
      return begin_training();
    stop_for(asked_.restart_s - asked_.detection_s);
  }

  void begin_training() {
    if (joining_) {
      joining_ = false;
      return stop_for(asked_.join_s);
    }
    speed_ = static_cast<double>(copies_) / asked_.copies;
    enter(phase::training, std::max(0.0, interval_s_ - unsaved_.seconds));
  }

  /// As soon as a copy is left.
  void restart() {
    joining_ = false;
    if (copies_ > 0)
      return stop_for(asked_.restart_s);
    ++history_.waits;
    enter(phase::waiting, never_s);
  }

  void stop_for(double seconds) { enter(phase::stopped, seconds); }

  void enter(phase next, double seconds) {
    ensure(seconds >= 0, "a phase takes no negative time");
    ensure((next == phase::waiting) == (copies_ == 0), "a job waits if, and only if, no copy is left");
    phase_ = next;
    phase_end_ = now_ + seconds;
  }

  void lose(progress what) {
    history_.kept_s -= what.seconds;
    history_.work_s -= what.work_s;
    history_.lost_s += what.seconds;
    unsaved_.seconds -= what.seconds;
    unsaved_.work_s -= what.work_s;
  }

  void count_copies() {
    copies_ = copies_with(asked_, how_, hosts_.down());
    hosts_.employ(hosts_in_use(asked_, copies_));
  }

  double step_s() const { return asked_.step_s / speed_; }

  const failure_question& asked_;
  recovery how_;
  double interval_s_;
  host_lives hosts_;
  failure_history history_;
  phase phase_ = phase::training;
  double now_ = 0, phase_end_ = 0;
  uint32_t copies_ = 0;
  double speed_ = 1;       ///< Of what trains now; who joins does so later.
  double step_done_s_ = 0; ///< Of the step under way.
  progress unsaved_;
  bool joining_ = false;
};

} // namespace

caf::error check_playable(const failure_question& asked, double interval_s, double life_shape, uint32_t runs) {
  RETURN_ERROR(check(asked));
  if (!(interval_s > 0))
    return invalid(fmt::format("checkpoints every {} s: it must be more than 0", interval_s));
  if (!(life_shape >= life_shape_min && life_shape <= life_shape_max))
    return invalid(fmt::format("a Weibull distribution of shape {}: it must be {} to {}", life_shape, life_shape_min,
                               life_shape_max));
  const auto seconds = asked.run_s * runs, failures = seconds / job_mttf_s(asked),
             events = failures + seconds / interval_s;
  if (events > events_max || failures * (hosts_of(asked) + asked.spares) > comparisons_max)
    return invalid(fmt::format("{:.2g} failures and checkpoints on {} hosts would take too long to play: take "
                               "shorter runs, or fewer",
                               events, hosts_of(asked)));
  return caf::none;
}

caf::expected<failure_history> simulate_failures(const failure_question& asked, recovery how, double interval_s,
                                                 uint64_t seed, double life_shape) {
  RETURN_ERROR(check_playable(asked, interval_s, life_shape, 1));
  return failing_run{asked, how, interval_s, seed, life_shape}.play();
}

host_lives::host_lives(uint32_t hosts, bool endless, host_life life, double repair_s, uint64_t seed)
  : scale_s_(life.mean_s / std::tgamma(1 + 1 / life.shape)), power_(1 / life.shape), repair_s_(repair_s),
    endless_(endless), numbers_(seed), next_(never_s) {
  for (uint32_t i = 0; i < hosts; ++i)
    idle_.push_back(draw());
  ensure(life.mean_s > 0 && life.shape > 0 && repair_s > 0, "hosts live, and repairs take time");
}

double host_lives::draw() {
  // The inverse of e^-(t/scale)^shape, of a number above 0 and up to 1; the mean is scale * gamma(1 + 1/shape).
  const auto uniform = (static_cast<double>(numbers_() >> 11) + 1) * 0x1p-53;
  return scale_s_ * std::pow(-std::log(uniform), power_);
}

void host_lives::find_next() {
  next_ = fail_at_.empty() ? never_s : std::ranges::min(fail_at_);
}

void host_lives::employ(uint32_t count) {
  // The host that started last stops; that is independent of how long it would have lasted.
  for (; fail_at_.size() > count; fail_at_.pop_back())
    idle_.push_back(fail_at_.back() - worked_s_);
  while (fail_at_.size() < count) {
    if (idle_.empty() && endless_)
      idle_.push_back(draw());
    ensure(!idle_.empty(), "no more hosts work than there are");
    fail_at_.push_back(worked_s_ + idle_.back());
    idle_.pop_back();
  }
  ensure(fail_at_.size() == count, "as many hosts work as were asked for");
  find_next();
}

void host_lives::fail(double now) {
  const auto at = std::ranges::find(fail_at_, next_);
  ensure(at != fail_at_.end(), "a host that fails works");
  ensure(returns_.empty() || returns_.back() <= now + repair_s_, "hosts come back in the order in which they failed");
  fail_at_.erase(at);
  returns_.push_back(now + repair_s_);
  find_next();
}

double host_lives::next_return() const noexcept {
  return returns_.empty() ? never_s : returns_.front();
}

void host_lives::take_back() {
  ensure(!returns_.empty(), "a host that comes back was down");
  returns_.pop_front();
  idle_.push_back(draw());
}

namespace {

void add(run_spread& to, double x, bool first, uint32_t runs) {
  to.mean += x / runs;
  to.least = first ? x : std::min(to.least, x);
  to.most = first ? x : std::max(to.most, x);
}

} // namespace

caf::expected<played_runs> play_runs(const failure_question& asked, recovery how, double interval_s, uint32_t runs,
                                     double life_shape) {
  RETURN_ERROR(check_playable(asked, interval_s, life_shape, runs));
  ensure(runs > 0, "at least one run is played");
  played_runs result;
  for (uint64_t seed = 1; seed <= runs; ++seed) {
    TRY(x, simulate_failures(asked, how, interval_s, seed, life_shape));
    const auto first = seed == 1;
    add(result.effective, x->kept_s / asked.run_s, first, runs);
    add(result.goodput, x->work_s / asked.run_s, first, runs);
    add(result.waiting, x->waiting_s / asked.run_s, first, runs);
    add(result.smaller, x->smaller_s / asked.run_s, first, runs);
    add(result.interruptions, static_cast<double>(x->interruptions), first, runs);
  }
  for (auto* each : {&result.effective, &result.goodput, &result.waiting, &result.smaller})
    ensure(each->least <= each->most, "the least is at most the most");
  return result;
}

} // namespace ringmaster::training
