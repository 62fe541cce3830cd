#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <httplib.h>
#include <mutex>
#include <thread>
#include <vector>

namespace ringmaster::gateway {

/// Runs each connection on a thread of its own, up to a limit. A connection beyond it runs on the caller's thread,
/// which learns so from `is_overflow`, and must be refused there at once. Threads are started when they are needed
/// first.
class worker_pool final : public httplib::TaskQueue {
public:
  explicit worker_pool(size_t threads_max) : threads_max_(threads_max) {}
  ~worker_pool() override { shutdown(); }

  void enqueue(std::function<void()> task) override;
  /// Waits for all that were started.
  void shutdown() override;

  /// Whether the calling task runs because no thread was free.
  static bool is_overflow();
  size_t busy() const;

private:
  void work();

  const size_t threads_max_;
  mutable std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::function<void()>> tasks_; ///< No more than there are idle threads.
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stops_ = false;
};

} // namespace ringmaster::gateway
