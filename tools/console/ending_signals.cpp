#include "tools/console/ending_signals.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>

namespace ringmaster {

namespace {

constexpr int signals_that_end[] = {SIGTERM, SIGINT, SIGHUP};

std::atomic<int> caught{0}; // by the handler
static_assert(std::atomic<int>::is_always_lock_free);

/// Without SIGHUP where it was ignored at the start, as nohup has it.
const sigset_t& ending_signals() {
  static const sigset_t all = [] {
    sigset_t result;
    sigemptyset(&result);
    for (auto x : signals_that_end) {
      struct sigaction now {};
      sigaction(x, nullptr, &now);
      if (x != SIGHUP || now.sa_handler != SIG_IGN)
        sigaddset(&result, x);
    }
    return result;
  }();
  return all;
}

} // namespace

void block_ending_signals() {
  auto& signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  struct sigaction action {};
  action.sa_handler = [](int number) { caught = number; };
  action.sa_mask = signals;
  action.sa_flags = SA_RESTART;
  for (auto x : signals_that_end)
    if (sigismember(&signals, x) == 1)
      sigaction(x, &action, nullptr);
  sigaction(SIGPIPE, &action, nullptr); // is for the thread that writes, which goes on
}

int ending_signal() {
  timespec now{0, 0};
  const auto blocked = std::max(sigtimedwait(&ending_signals(), nullptr, &now), 0);
  return blocked != 0 ? blocked : caught.exchange(0);
}

} // namespace ringmaster
