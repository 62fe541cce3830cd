#pragma once

#include "planner/failures/failure_question.hpp"

#include <array>

namespace ringmaster::training {

/// What failures leave of a job in the long run, as parts of the wall-clock time.
struct recovery_outcome {
  recovery how = recovery::restart;
  double interval_s = 0;          ///< Training between two checkpoints; infinite: no checkpoint is needed.
  double effective = 0;           ///< The part in which progress is made that is kept, by any number of copies.
  double goodput = 0;             ///< The progress that is kept, relative to that of all copies without failures.
  double waiting = 0;             ///< The part in which the hosts do not suffice for a single copy.
  double smaller = 0;             ///< The part with fewer copies than all.
  double interruptions_a_day = 0; ///< Failures of hosts that work.
};

struct failure_answer {
  double mttf_s = 0;                          ///< Of the job with all its hosts.
  double young_s = 0, daly_s = 0, best_s = 0; ///< Intervals for a restart from the checkpoint; a step at least.
  std::array<recovery_outcome, 4> outcomes;   ///< Of `all_recoveries`, in their order.
};

/// In closed form.
///
/// Hosts: while k are down, failures come at a rate l(k) in proportion to the hosts that work, and each is down for the
/// repair. That is a queue with as many servers as come, whose lengths are distributed as p(k) ~ prod l(i) repair /
/// (i + 1) whatever the distribution of repairs with that mean (Sevastyanov 1957; Erlang's loss formula for `wait`).
///
/// Time: while k are down, the part that is kept is `kept_of_segments` between stops, less the stops. `restart` and
/// `wait` are exact so. `smaller` and `shrink` are so to the first order where what a segment, a stop and a step take
/// is short beside the repair: a host's return stops training for a checkpoint and a restart without detection, or for
/// a joining between two steps. A shrink's segment is a step that has no write; as the state is lost with the last
/// copy, it writes checkpoints for that, as often as such a loss wants them.
recovery_outcome outcome_of(const failure_question& asked, recovery how);

/// The question must have passed `check`.
failure_answer answer_of(const failure_question& asked);

// How often to write a checkpoint, where failures come after exponential times and what was done since the last one is
// done again. All times are seconds, and an interval is the training between the end of one write and the beginning of
// the next. `write_s` may be 0: then the best interval is 0, and the caller applies the length of a step as a lower
// limit. mttf_s > 0.

/// Young, "A first order approximation to the optimum checkpoint interval", CACM 1974: sqrt(2 write mttf). Right where
/// the write is short beside the MTTF.
double young_interval(double write_s, double mttf_s);

/// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 2006, equation 37: three
/// terms of the series in sqrt(write / 2 mttf); the MTTF where the write is twice as long, or longer.
double daly_interval(double write_s, double mttf_s);

/// The interval of which `kept_fraction` is the largest, to 1e-7 of it and better; it does not depend on the restart.
double best_interval(double write_s, double mttf_s);

/// Segments of interval_s of training and a write, one after the other. A failure, of which there are `failure_rate` a
/// second, throws away what the segment has done; a cut, of which there are `cut_rate`, keeps it; both begin another
/// segment. The part of their time in which training is done that is kept.
double kept_of_segments(double interval_s, double write_s, double failure_rate, double cut_rate = 0);

/// The same with a restart after each failure, which a failure lets begin again: interval_s / E, with Daly's expected
/// time of a segment, E = mttf e^(restart/mttf) (e^((interval + write)/mttf) - 1).
double kept_fraction(double interval_s, double write_s, double restart_s, double mttf_s);

} // namespace ringmaster::training
