#include "tools/processes/process_watch.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

namespace ringmaster::launch {

namespace {

sigset_t watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2})
    ::sigaddset(&set, number);
  return set;
}

/// At most a tick of the clock.
int milliseconds_until(process_watch::clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - process_watch::clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, awake_clock::tick.count()));
}

} // namespace

caf::expected<std::unique_ptr<process_watch>> process_watch::make() {
  std::unique_ptr<process_watch> watch(new process_watch);
  auto signals = watched_signals();
  ::signal(SIGPIPE, SIG_IGN); // a closed output must not end the cluster
  ::sigprocmask(SIG_BLOCK, &signals, &watch->mask_before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  watch->signals_ = unique_fd{::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!watch->signals_)
    return make_error(errc::io_error, fmt::format("signalfd: {}", std::strerror(errno)));
  return watch;
}

process_watch::~process_watch() {
  for (auto& process : processes_)
    process->signal(SIGKILL);
  kill_the_rest();
}

caf::expected<watched_process*> process_watch::start(std::string name, child_spec spec,
                                                     watched_process::output_use use) {
  spec.signal_mask = mask_before_;
  TRY(child, child_process::start(spec));
  processes_.push_back(std::make_unique<watched_process>(std::move(name), std::move(*child), use));
  return processes_.back().get();
}

std::vector<process_watch::received_signal> process_watch::step(clock::time_point deadline) {
  std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
  for (auto& process : processes_)
    for (auto* fd :
         {&process->child().standard_output(), &process->child().standard_error(), &process->child().notices()})
      if (*fd)
        polled.push_back({fd->get(), POLLIN, 0});
  // EINTR counts as a time-out: the caller checks its condition and calls again.
  const bool has_limit = deadline != clock::time_point::max();
  ::poll(polled.data(), polled.size(), has_limit ? milliseconds_until(deadline) : -1);
  awake_clock::note_tick();
  for (auto& process : processes_)
    process->read_output();
  auto signals = read_signals();
  reap();
  return signals;
}

std::vector<process_watch::received_signal> process_watch::read_signals() {
  std::vector<received_signal> signals;
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD)
      signals.push_back({static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL});
  return signals;
}

void process_watch::suspend() {
  const auto signal_all = [this](int number) {
    for (auto& process : processes_)
      if (process->running())
        process->signal(number);
  };
  signal_all(SIGSTOP);
  ::raise(SIGSTOP); // returns after SIGCONT
  signal_all(SIGCONT);
}

void process_watch::reap() {
  int raw = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &raw, WNOHANG | WUNTRACED | WCONTINUED)) > 0;)
    for (auto& process : processes_) {
      if (!process->running() || process->child().pid() != pid)
        continue;
      if (WIFSTOPPED(raw) || WIFCONTINUED(raw))
        process->on_stop(WIFSTOPPED(raw));
      else
        process->on_exit(exit_status{raw});
    }
}

std::vector<pid_t> process_watch::orphans() const {
  std::vector<pid_t> result;
  std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
  for (pid_t pid = 0; children >> pid;)
    if (std::none_of(processes_.begin(), processes_.end(),
                     [=](auto& x) { return x->running() && x->child().pid() == pid; }))
      result.push_back(pid);
  return result;
}

// Polls, since signals stay pending for `step`.
void process_watch::end_orphans(const std::vector<pid_t>& but) {
  for (auto give_up = clock::now() + std::chrono::seconds{2}; clock::now() < give_up; ::poll(nullptr, 0, 2)) {
    reap();
    auto left = orphans();
    std::erase_if(left, [&](pid_t x) { return std::find(but.begin(), but.end(), x) != but.end(); });
    if (left.empty())
      return;
    for (auto pid : left)
      ::kill(pid, SIGKILL);
  }
}

// Kills children and adopted orphans. A killed process may leave new orphans, so this repeats until there are none.
// Processes that the kernel cannot end, such as in a hanging device, are not waited for.
void process_watch::kill_the_rest() {
  auto give_up = clock::now() + std::chrono::seconds{2};
  for (;;) {
    reap();
    if (::waitpid(-1, nullptr, WNOHANG) < 0 || clock::now() > give_up)
      return;
    std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
    for (pid_t pid = 0; children >> pid;)
      ::kill(pid, SIGKILL);
    pollfd child_ended{signals_.get(), POLLIN, 0};
    ::poll(&child_ended, 1, 10);
    read_signals();
  }
}

} // namespace ringmaster::launch
