#include "planner/failures/checkpoint_interval.hpp"

#include "runtime/invariants/ensure.hpp"

#include <cmath>

namespace ringmaster::training {

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

double kept_part(double interval_s, double write_s, double restart_s, double mttf_s) {
  ensure(restart_s >= 0 && mttf_s > 0, "a restart takes no negative time, and failures are apart");
  // w seconds pass without a failure with the probability e^(-w/mttf), so it takes e^(w/mttf) - 1 failures until they
  // do, and mttf for each. A failure costs a restart as well, which takes mttf (e^(restart/mttf) - 1) by the same rule.
  // The sum of both is mttf e^(restart/mttf), so E is the product with e^((interval + write)/mttf) - 1, and a restart
  // takes the same part whatever the interval.
  return std::exp(-restart_s / mttf_s) * kept_of_segments(interval_s, write_s, 1 / mttf_s);
}

} // namespace ringmaster::training
