#include "tools/processes/child_process.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace ringmaster::launch {

namespace {

/// All ends are closed on exec, so that no child holds another one's pipe open.
struct pipe_ends {
  unique_fd read;
  unique_fd write;

  bool open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0)
      return false;
    read = unique_fd{fds[0]};
    write = unique_fd{fds[1]};
    return true;
  }
};

struct child_pipes {
  pipe_ends input, output, error, notices;
  pipe_ends failure; // carries errno if exec fails, and is closed if it succeeds
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const child_spec& spec, const child_pipes& pipes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    auto is_it = [&](const std::string& name) { return text.starts_with(name + "="); };
    auto replaced = std::any_of(spec.environment.begin(), spec.environment.end(),
                                [&](auto& x) { return is_it(x.first); });
    if (!replaced && std::none_of(spec.unset.begin(), spec.unset.end(), is_it))
      result.push_back(std::move(text));
  }
  for (auto& [name, value] : spec.environment)
    result.push_back(name + "=" + value);
  if (spec.notices)
    result.push_back(fmt::format("RINGMASTER_NOTICES_FD={}", pipes.notices.write.get()));
  return result;
}

/// dup2 that also works if the descriptor has that number already.
bool move_to(int fd, int wanted) {
  return fd == wanted ? ::fcntl(fd, F_SETFD, 0) == 0 : ::dup2(fd, wanted) >= 0;
}

bool connect_streams(const child_spec& spec, const child_pipes& pipes) {
  if (spec.input == child_spec::input_kind::pipe && !move_to(pipes.input.read.get(), 0))
    return false;
  if (spec.input == child_spec::input_kind::none && !move_to(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0))
    return false;
  return spec.output == child_spec::output_kind::inherited
         || (move_to(pipes.output.write.get(), 1) && move_to(pipes.error.write.get(), 2));
}

/// Runs between fork and exec: system calls only.
[[noreturn]] void become(const child_spec& spec, const child_pipes& pipes, pid_t parent, char** arguments,
                         char** environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(127); // the parent exited before the line above
  if (spec.own_group)
    ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL); // ignored by this process
  if (connect_streams(spec, pipes) && (!spec.notices || ::fcntl(pipes.notices.write.get(), F_SETFD, 0) == 0)) {
    ::sigprocmask(SIG_SETMASK, &spec.signal_mask, nullptr);
    ::execvpe(arguments[0], arguments, environment);
  }
  int reason = errno;
  [[maybe_unused]] auto written = ::write(pipes.failure.write.get(), &reason, sizeof reason);
  ::_exit(127);
}

caf::error system_error(const std::string& program, int reason) {
  return make_error(errc::io_error, fmt::format("cannot start {}: {}", program, std::strerror(reason)));
}

/// Waits for exec. Returns 0 or its errno.
int exec_failure(int fd) {
  int reason = 0;
  ssize_t count = 0;
  do
    count = ::read(fd, &reason, sizeof reason);
  while (count < 0 && errno == EINTR);
  return count == sizeof reason ? reason : 0;
}

} // namespace

caf::expected<child_process> child_process::start(const child_spec& spec) {
  auto argument_words = spec.arguments;
  auto arguments = pointers_to(argument_words);
  auto& program = spec.arguments.front();
  child_pipes pipes;
  if (!pipes.failure.open() || (spec.input == child_spec::input_kind::pipe && !pipes.input.open())
      || (spec.output == child_spec::output_kind::pipes && (!pipes.output.open() || !pipes.error.open()))
      || (spec.notices && !pipes.notices.open()))
    return system_error(program, errno);
  auto environment_words = environment_of(spec, pipes);
  auto environment = pointers_to(environment_words);
  auto parent = ::getpid();
  child_process child;
  child.own_group_ = spec.own_group;
  child.pid_ = ::fork();
  if (child.pid_ < 0)
    return system_error(program, errno);
  if (child.pid_ == 0)
    become(spec, pipes, parent, arguments.data(), environment.data());
  pipes.failure.write.close();
  if (auto reason = exec_failure(pipes.failure.read.get()); reason != 0) {
    while (::waitpid(child.pid_, nullptr, 0) < 0 && errno == EINTR)
      continue;
    return system_error(program, reason);
  }
  child.input_ = std::move(pipes.input.write);
  if (child.input_ && !spec.first_line.empty()) {
    const auto line = spec.first_line + "\n";
    [[maybe_unused]] const auto written = ::write(child.input_.get(), line.data(),
                                                  line.size()); // an empty pipe has room
  }
  child.output_ = std::move(pipes.output.read);
  child.error_ = std::move(pipes.error.read);
  child.notices_ = std::move(pipes.notices.read);
  for (auto* fd : {&child.input_, &child.output_, &child.error_, &child.notices_})
    if (*fd)
      ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  return child;
}

void child_process::signal(int number) const {
  ::kill(own_group_ ? -pid_ : pid_, number);
}

void child_process::nudge() const {
  if (input_) [[maybe_unused]]
    auto written = ::write(input_.get(), "\n", 1);
}

void child_process::stop() {
  if (input_)
    input_.close();
  else
    signal(SIGTERM);
}

} // namespace ringmaster::launch
