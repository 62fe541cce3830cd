#include "planner/failures/goodput.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ringmaster::training {

namespace {

/// The state of a job with a certain number of hosts down.
struct down_state {
  uint32_t copies = 0;      ///< That train.
  uint32_t copies_less = 0; ///< With one host more down.
  double part = 0;          ///< Of the time.
  double failure_rate = 0;  ///< A second, of hosts that work.
  double growth_rate = 0;   ///< A second, of returns that let a copy more train.
};

void set_parts(std::vector<down_state>& states, double repair_s) {
  // In logarithms: the first weight of a large cluster may be e^-1000 of the largest.
  double weight = 0, largest = 0;
  for (size_t k = 0; k < states.size(); ++k) {
    states[k].part = weight;
    largest = std::max(largest, weight);
    weight += std::log(states[k].failure_rate * repair_s / static_cast<double>(k + 1));
  }
  double sum = 0;
  for (auto& x : states)
    sum += x.part = std::exp(x.part - largest);
  ensure(sum >= 1, "the likeliest state has the weight 1");
  for (auto& x : states)
    x.part /= sum;
}

std::vector<down_state> down_states(const failure_question& asked, recovery how) {
  const auto host_rate = 1 / host_mttf_s(asked);
  if (how == recovery::restart) // how many are down does not matter
    return {{asked.copies, asked.copies, 1, 1 / job_mttf_s(asked), 0}};
  std::vector<down_state> result;
  uint32_t copies = asked.copies, copies_more = asked.copies;
  for (uint32_t down = 0;; ++down) {
    const auto less = copies > 0 ? copies_with(asked, how, down + 1) : 0;
    result.push_back({copies, less, 0, host_rate * hosts_in_use(asked, copies),
                      copies_more > copies ? down / asked.repair_s : 0});
    if (copies == 0)
      break;
    ensure(less <= copies, "another failure leaves no more copies");
    copies_more = copies;
    copies = less;
  }
  set_parts(result, asked.repair_s);
  return result;
}

/// What is kept in such a state; `share` is the weight of a number of copies. A failure stops the copies that are left
/// (or all of them if the job waits for a replacement); a return stops those that train after it.
struct kept_while_down {
  double segments = 0;     ///< Kept between stops.
  double failure_stop = 0; ///< Seconds.
  double growth_stop = 0;  ///< Seconds, where a copy joins those that are here.

  double operator()(const down_state& x, auto share) const {
    const auto here = share(x.copies), then = x.copies_less > 0 ? share(x.copies_less) : here;
    const auto grows = x.copies > x.copies_less && x.copies_less > 0;
    return segments * std::exp(grows ? -x.failure_rate * growth_stop : 0)
           * (here + then * std::expm1(-x.failure_rate * failure_stop));
  }
};

kept_while_down kept_by_restarts(const failure_question& asked, const down_state& x, double interval_s) {
  return {kept_of_segments(interval_s, asked.checkpoint_write_s, x.failure_rate, x.growth_rate), asked.restart_s,
          asked.checkpoint_write_s + asked.restart_s - asked.detection_s};
}

/// The last copy's failure is counted apart.
kept_while_down kept_by_shrinking(const failure_question& asked, const down_state& x) {
  if (!survives(asked, x.copies))
    return {1, 0, asked.join_s};
  const auto step_s = asked.step_s * asked.copies / x.copies;
  const auto replaced = x.copies_less == x.copies;
  return {kept_of_segments(step_s, 0, x.failure_rate), asked.detection_s + (replaced ? asked.join_s : 0), asked.join_s};
}

/// Seconds in which there is any state until all of it is lost.
double mttf_of_all_copies_s(const failure_question& asked, const std::vector<down_state>& states) {
  constexpr double rare = 1e-30; // a second; the reciprocal of what is left of p(k) may be infinite
  double losses = 0, up = 0;
  for (auto& x : states)
    if (x.copies > 0) {
      up += x.part;
      losses += survives(asked, x.copies) ? 0 : x.part * x.failure_rate;
    }
  return losses > rare * up ? up / losses : std::numeric_limits<double>::infinity();
}

/// Where the state is lost every mttf_s: what was asked for, or the best.
double interval_of(const failure_question& asked, double mttf_s) {
  if (asked.interval_s || std::isinf(mttf_s))
    return asked.interval_s.value_or(mttf_s);
  return std::max(asked.step_s, best_interval(asked.checkpoint_write_s, mttf_s));
}

} // namespace

recovery_outcome outcome_of(const failure_question& asked, recovery how) {
  const auto states = down_states(asked, how);
  recovery_outcome result{.how = how};
  const auto shrinks = how == recovery::shrink;
  const auto mttf_s = shrinks ? mttf_of_all_copies_s(asked, states) : job_mttf_s(asked);
  result.interval_s = interval_of(asked, mttf_s);
  const auto around = !shrinks || std::isinf(result.interval_s)
                        ? 1
                        : kept_fraction(result.interval_s, asked.checkpoint_write_s, asked.restart_s, mttf_s);
  for (auto& x : states) {
    result.interruptions_a_day += 86400 * x.part * x.failure_rate;
    result.waiting += x.copies == 0 ? x.part : 0;
    result.smaller += x.copies > 0 && x.copies < asked.copies ? x.part : 0;
    if (x.copies == 0)
      continue;
    const auto kept = shrinks ? kept_by_shrinking(asked, x) : kept_by_restarts(asked, x, result.interval_s);
    result.effective += around * x.part * kept(x, [](uint32_t) { return 1.0; });
    result.goodput += around * x.part * kept(x, [&](uint32_t copies) { return 1.0 * copies / asked.copies; });
  }
  // a stop is counted with the copies that are left, each by itself: of stops one upon the other that leaves too much
  result.goodput = std::min(result.goodput, result.effective);
  constexpr double rounding = 1e-9;
  ensure(result.effective <= 1 + rounding && result.waiting + result.smaller <= 1 + rounding,
         "parts of the time are at most all of it");
  ensure(result.interval_s > 0 && result.interruptions_a_day >= 0, "checkpoints are apart, and failures not negative");
  return result;
}

failure_answer answer_of(const failure_question& asked) {
  failure_answer result;
  const auto mttf_s = result.mttf_s = job_mttf_s(asked);
  result.young_s = std::max(asked.step_s, young_interval(asked.checkpoint_write_s, mttf_s));
  result.daly_s = std::max(asked.step_s, daly_interval(asked.checkpoint_write_s, mttf_s));
  result.best_s = std::max(asked.step_s, best_interval(asked.checkpoint_write_s, mttf_s));
  std::ranges::transform(all_recoveries, result.outcomes.begin(), [&](auto how) { return outcome_of(asked, how); });
  return result;
}

double young_interval(double write_s, double mttf_s) {
  ensure(write_s >= 0 && mttf_s > 0, "a write takes no negative time, and failures are apart");
  return std::sqrt(2 * write_s * mttf_s);
}

double daly_interval(double write_s, double mttf_s) {
  if (write_s >= 2 * mttf_s)
    return mttf_s;
  const auto ratio = write_s / (2 * mttf_s);
  return young_interval(write_s, mttf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write_s;
}

double best_interval(double write_s, double mttf_s) {
  ensure(write_s >= 0 && mttf_s > 0, "a write takes no negative time, and failures are apart");
  // With x = interval / mttf and w = write / mttf the derivative of E / interval is zero where (1 - x) e^(x + w) = 1.
  const auto w = write_s / mttf_s;
  if (w < 1e-14) // what is left of log1p(-x) + x would be rounding
    return young_interval(write_s, mttf_s);
  double low = 0, high = 1;
  for (int i = 0; i < 64; ++i) {
    const auto x = (low + high) / 2;
    (std::log1p(-x) + x + w > 0 ? low : high) = x;
  }
  ensure(low >= 0 && low <= 1, "the best interval is at most the mean time to failure");
  return low * mttf_s;
}

double kept_of_segments(double interval_s, double write_s, double failure_rate, double cut_rate) {
  ensure(interval_s >= 0 && write_s >= 0, "a segment takes no negative time");
  ensure(failure_rate >= 0 && cut_rate >= 0, "rates are not negative");
  const auto whole = interval_s + write_s, rate = failure_rate + cut_rate;
  if (whole == 0)
    return 1;
  if (rate * whole < 1e-12) // the differences below would be rounding
    return interval_s / whole;
  // A segment goes on until it is whole or something happens, whose density is rate e^(-rate t).
  const auto mean_length = -std::expm1(-rate * whole) / rate;
  const auto of_whole = interval_s * std::exp(-rate * whole);
  if (cut_rate == 0)
    return of_whole / mean_length;
  // A cut keeps t of what is cut at t, and all where only the write is.
  const auto at_end = std::exp(-rate * interval_s);
  const auto of_cut_training = (1 - at_end * (1 + rate * interval_s)) / (rate * rate);
  const auto of_cut_writes = interval_s * (at_end - std::exp(-rate * whole)) / rate;
  return (of_whole + cut_rate * (of_cut_training + of_cut_writes)) / mean_length;
}

double kept_fraction(double interval_s, double write_s, double restart_s, double mttf_s) {
  ensure(restart_s >= 0 && mttf_s > 0, "a restart takes no negative time, and failures are apart");
  // w seconds pass without a failure with the probability e^(-w/mttf), so it takes e^(w/mttf) - 1 failures until they
  // do, and mttf for each. A failure costs a restart as well, which takes mttf (e^(restart/mttf) - 1) by the same rule.
  // The sum of both is mttf e^(restart/mttf), so E is the product with e^((interval + write)/mttf) - 1, and a restart
  // takes the same part whatever the interval.
  return std::exp(-restart_s / mttf_s) * kept_of_segments(interval_s, write_s, 1 / mttf_s);
}

} // namespace ringmaster::training
