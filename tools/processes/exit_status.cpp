#include "tools/processes/exit_status.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <sys/wait.h>

namespace ringmaster::launch {

int exit_status::shell_status() const {
  return WIFSIGNALED(raw_) ? 128 + WTERMSIG(raw_) : WEXITSTATUS(raw_);
}

bool exit_status::ended_from_outside() const {
  if (!WIFSIGNALED(raw_))
    return false;
  auto number = WTERMSIG(raw_);
  return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

std::string exit_status::describe() const {
  if (WIFSIGNALED(raw_))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(raw_), ::strsignal(WTERMSIG(raw_)));
  return fmt::format("exited with status {}", WEXITSTATUS(raw_));
}

} // namespace ringmaster::launch
