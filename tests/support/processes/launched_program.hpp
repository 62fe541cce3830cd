#pragma once

#include "messages/errc.hpp"
#include "tools/launch/scratch_directory.hpp"
#include "tools/processes/child_process.hpp"
#include "tools/processes/watched_process.hpp"

#include <chrono>
#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <poll.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace ringmaster::launch {

/// A directory with executable shell scripts in it.
class script_directory {
public:
  script_directory() : directory_(std::move(*scratch_directory::make())) {}

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream{path(name)} << text;
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
    return path(name);
  }

  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream{path(name)}.rdbuf();
    return text.str();
  }

private:
  scratch_directory directory_;
};

/// A process under test: gathers what it writes while it is waited for, never longer than `limit`.
class launched_program {
public:
  static constexpr std::chrono::seconds limit{20};

  explicit launched_program(std::vector<std::string> arguments)
    : child(started(child_process::start({.arguments = std::move(arguments), .input = child_spec::input_kind::pipe}))) {
  }

  ~launched_program() {
    if (status)
      return;
    ::kill(child.pid(), SIGKILL);
    ::waitpid(child.pid(), nullptr, 0);
  }

  bool wait_until(const std::function<bool()>& done) {
    auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done() && std::chrono::steady_clock::now() < deadline)
      look(2);
    return done();
  }

  bool await_output(const std::string& text) {
    return wait_until([&] { return (output + error).find(text) != std::string::npos; });
  }

  /// The exit status as a shell has it; -1 where it is still running after the limit.
  int finish() {
    wait_until([this] { return status.has_value(); });
    look(0);
    return status ? status->shell_status() : -1;
  }

  child_process child;
  std::string output;
  std::string error;
  std::optional<exit_status> status;

private:
  static child_process started(caf::expected<child_process> x) {
    REQUIRE_MESSAGE(x.engaged(), (x ? "" : render(x.error())));
    return std::move(*x);
  }

  void look(int wait_ms) {
    pollfd fds[] = {{child.standard_output().get(), POLLIN, 0}, {child.standard_error().get(), POLLIN, 0}};
    ::poll(fds, 2, wait_ms);
    int raw = 0;
    if (!status && ::waitpid(child.pid(), &raw, WNOHANG) == child.pid())
      status = exit_status{raw};
    take(child.standard_output(), output);
    take(child.standard_error(), error);
  }

  static void take(unique_fd& fd, std::string& text) {
    char buffer[4096];
    ssize_t count = 0;
    while (fd && (count = ::read(fd.get(), buffer, sizeof buffer)) > 0)
      text.append(buffer, static_cast<size_t>(count));
    if (count == 0)
      fd.close();
  }
};

/// Whether a process has ended; one that no one has waited for yet counts as ended.
inline bool has_ended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  if (!std::getline(file, stat))
    return true;
  return stat.compare(stat.rfind(')') + 2, 1, "Z") == 0;
}

} // namespace ringmaster::launch
