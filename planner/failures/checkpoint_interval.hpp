#pragma once

namespace ringmaster::training {

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

/// The interval of which `kept_part` is the largest, to 1e-7 of it and better; it does not depend on the restart.
double best_interval(double write_s, double mttf_s);

/// Segments of interval_s of training and a write, one after the other. A failure, of which there are `failure_rate` a
/// second, throws away what the segment has done; a cut, of which there are `cut_rate`, keeps it; both begin another
/// segment. The part of their time in which training is done that is kept.
double kept_of_segments(double interval_s, double write_s, double failure_rate, double cut_rate = 0);

/// The same with a restart after each failure, which a failure lets begin again: interval_s / E, with Daly's expected
/// time of a segment, E = mttf e^(restart/mttf) (e^((interval + write)/mttf) - 1).
double kept_part(double interval_s, double write_s, double restart_s, double mttf_s);

} // namespace ringmaster::training
