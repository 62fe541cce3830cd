#pragma once

namespace ringmaster {

/// From now on the signals that end a program are for `ending_signal` to see, whichever thread they reach: they are
/// blocked, so that no wait of ours is interrupted, if this is called before any of our threads is started; and caught,
/// for libraries start threads that block nothing as soon as they are loaded. Among them is that of an output whose
/// reader has gone.
void block_ending_signals();
/// The signal that has come since, or 0.
int ending_signal();

} // namespace ringmaster
