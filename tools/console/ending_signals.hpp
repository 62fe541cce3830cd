#pragma once

namespace ringmaster {

/// Lets `ending_signal` receive the signals that stop a program, including SIGPIPE. They are blocked, so that no wait
/// is interrupted; call this before starting threads. They are also caught, since libraries start threads that block
/// nothing.
void block_ending_signals();
/// The received signal, or 0.
int ending_signal();

} // namespace ringmaster
