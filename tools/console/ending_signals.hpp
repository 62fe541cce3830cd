#pragma once

namespace ringmaster {

/// Blocks the signals that end a program, before any thread is started, so that `ending_signal` sees them.
void block_ending_signals();
/// The signal that has come since, or 0.
int ending_signal();

} // namespace ringmaster
