#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ringmaster::test {

/// A program that runs beside the test and is killed with this object. Its standard output can be read line by line;
/// its standard input stays open and empty.
class child_process {
public:
  explicit child_process(std::vector<std::string> command) {
    int output[2];
    int input[2];
    if (::pipe2(output, O_CLOEXEC) != 0 || ::pipe2(input, O_CLOEXEC) != 0)
      std::abort();
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    std::vector<char*> argv;
    for (auto& word : command)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    if (::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0)
      std::abort();
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(output[1]);
    ::close(input[0]);
    output_ = ::fdopen(output[0], "r");
    input_ = input[1];
  }

  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  ~child_process() {
    kill();
    std::fclose(output_);
    ::close(input_);
  }

  pid_t pid() const { return pid_; }

  /// The next line without its end; empty at the end of the output.
  std::string read_line() {
    std::string line;
    for (auto c = std::fgetc(output_); c != EOF; c = std::fgetc(output_)) {
      if (c == '\n')
        return line;
      line += static_cast<char>(c);
    }
    return {};
  }

  /// SIGKILL; returns when the process is gone.
  void kill() {
    if (dead_)
      return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    dead_ = true;
  }

private:
  pid_t pid_ = 0;
  std::FILE* output_ = nullptr;
  int input_ = -1;
  bool dead_ = false;
};

} // namespace ringmaster::test
