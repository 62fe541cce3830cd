#pragma once

#include "tests/support/processes/launched_program.hpp"
#include "tools/processes/process_watch.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace ringmaster::launch {

/// What a program is that watches its children, for the length of a test: the watch, and what is said on standard
/// error.
class watched_children {
public:
  static constexpr std::chrono::seconds limit{20};

  watched_children() : error_before_(::dup(STDERR_FILENO)), pipe_before_(::signal(SIGPIPE, SIG_DFL)) {
    ::sigprocmask(SIG_SETMASK, nullptr, &mask_before_);
    auto made = process_watch::make();
    REQUIRE(made.engaged());
    watch_ = std::move(*made);
    const unique_fd file{::open(scripts.write("said", "").c_str(), O_WRONLY | O_APPEND)};
    ::dup2(file.get(), STDERR_FILENO);
  }
  ~watched_children() {
    watch_.reset();
    ::dup2(error_before_.get(), STDERR_FILENO);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    ::signal(SIGPIPE, pipe_before_);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  watched_children(const watched_children&) = delete;

  process_watch& watch() { return *watch_; }
  /// On standard error, by now.
  std::string said() const { return scripts.read("said"); }
  /// Runs `script` under a name, silently of its own.
  watched_process* start(const std::string& name, const std::string& script) {
    auto child = watch_->start(name, {.arguments = {"sh", "-c", script}}, watched_process::output_use::kept);
    REQUIRE(child.engaged());
    return *child;
  }
  /// Looks after the children until then.
  bool wait_until(const std::function<bool()>& done) {
    const auto deadline = process_watch::clock::now() + limit;
    while (!done() && process_watch::clock::now() < deadline)
      watch_->step(std::min(deadline, process_watch::clock::now() + std::chrono::milliseconds{10}));
    return done();
  }

  script_directory scripts;

private:
  unique_fd error_before_;
  void (*pipe_before_)(int);
  sigset_t mask_before_ = {};
  std::unique_ptr<process_watch> watch_;
};

} // namespace ringmaster::launch
