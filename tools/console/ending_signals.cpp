#include "tools/console/ending_signals.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <sys/time.h>
#include <unistd.h>

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

namespace {

std::string last_words; // the handler's, which may not allocate

void end_process(int) {
  [[maybe_unused]] auto written = write(STDERR_FILENO, last_words.data(), last_words.size());
  _exit(1);
}

void arm(std::chrono::milliseconds x) {
  itimerval timer{};
  timer.it_value.tv_sec = x.count() / 1000;
  timer.it_value.tv_usec = x.count() % 1000 * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

} // namespace

time_limit::time_limit(std::chrono::milliseconds limit, std::string sentence) {
  last_words = std::move(sentence) + '\n';
  std::signal(SIGALRM, end_process);
  arm(limit);
}

time_limit::~time_limit() {
  arm({});
  std::signal(SIGALRM, SIG_DFL);
}

} // namespace ringmaster
