#include "tools/console/ending_signals.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>

namespace ringmaster {

namespace {

sigset_t ending_signals() {
  sigset_t result;
  sigemptyset(&result);
  for (auto x : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&result, x);
  return result;
}

} // namespace

void block_ending_signals() {
  auto signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int ending_signal() {
  auto signals = ending_signals();
  timespec now{0, 0};
  return std::max(sigtimedwait(&signals, nullptr, &now), 0);
}

} // namespace ringmaster
