#pragma once

#include "actors/communicators/joint_job.hpp"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ringmaster {

/// The threads of a process that help its communicators move data. They are no actors: they look again
/// and again for a moment, since one operation seldom comes alone, and sleep when nothing comes; an actor that did so
/// would keep a worker of the scheduler from everybody else. A communicator needs none: it moves
/// what they do not. Thread-safe. Owned by the communicators that share it.
class joint_movers {
public:
  /// `threads` > 0
  explicit joint_movers(uint32_t threads);
  joint_movers(const joint_movers&) = delete;
  joint_movers& operator=(const joint_movers&) = delete;
  /// Waits until the jobs' slices that have been taken are moved.
  ~joint_movers();

  uint32_t threads() const noexcept { return static_cast<uint32_t>(threads_.size()); }
  /// Has the threads take slices of the job as workers 1 to `threads()`, at once where no earlier job has any left.
  void help_with(std::shared_ptr<joint_job> job);

private:
  struct shared_state;

  std::shared_ptr<shared_state> state_;
  std::vector<std::thread> threads_;
};

} // namespace ringmaster
