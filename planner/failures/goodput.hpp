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

} // namespace ringmaster::training
