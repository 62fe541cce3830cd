#include "gateway/http/server/worker_pool.hpp"

#include "runtime/invariants/ensure.hpp"

#include <system_error>

namespace ringmaster::gateway {

namespace {

thread_local bool overflow = false;

} // namespace

bool worker_pool::is_overflow() {
  return overflow;
}

size_t worker_pool::busy() const {
  std::scoped_lock lock{mutex_};
  return threads_.size() - idle_ + tasks_.size();
}

void worker_pool::enqueue(std::function<void()> task) {
  {
    std::scoped_lock lock{mutex_};
    if (tasks_.size() == idle_ && threads_.size() < threads_max_) {
      try {
        threads_.emplace_back([this] { work(); });
        ++idle_;                           // until it takes a task
      } catch (const std::system_error&) { // the system has no thread for it
      }
    }
    if (tasks_.size() < idle_) {
      tasks_.push_back(std::move(task));
      wanted_.notify_one();
      return;
    }
  }
  overflow = true;
  task();
  overflow = false;
}

void worker_pool::work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    wanted_.wait(lock, [this] { return stops_ || !tasks_.empty(); });
    if (tasks_.empty())
      return;
    ensure(idle_ >= tasks_.size(), "each waiting task has an idle thread");
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    --idle_;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    ++idle_;
  }
}

void worker_pool::shutdown() {
  {
    std::scoped_lock lock{mutex_};
    stops_ = true;
  }
  wanted_.notify_all();
  for (auto& thread : threads_)
    thread.join();
  threads_.clear();
}

} // namespace ringmaster::gateway
