#pragma once

#include "runtime/training/executor.hpp"

#include <cstdlib>
#include <tuple>

namespace ringmaster::training {

/// What one rank does in a training step: a coroutine that an executor resumes.
class strategy {
public:
  struct promise_type {
    strategy get_return_object() { return strategy{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); } // operations do not throw
  };

  strategy() = default;
  strategy(strategy&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  strategy& operator=(strategy&& other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~strategy() {
    if (body_)
      body_.destroy();
  }

  std::coroutine_handle<> body() const { return body_; }

private:
  explicit strategy(std::coroutine_handle<promise_type> body) : body_(body) {}

  std::coroutine_handle<promise_type> body_;
};

/// An operation to wait for with co_await, which begins it and gives its results: nothing, a value, or a tuple of two.
/// Where it is refused or fails the strategy does not go on; its executor has the error.
template <class... Values>
class [[nodiscard]] operation {
public:
  /// With an error the operation is refused.
  operation(executor& on, pending work, std::string error)
    : on_(on), work_(std::move(work)), error_(std::move(error)) {}

  bool await_ready() {
    if (error_.empty())
      return on_.begin(work_);
    on_.fail(work_.rank, std::move(error_));
    return false;
  }
  void await_suspend(std::coroutine_handle<> waiter) { work_.waiter = waiter; }
  auto await_resume() {
    if constexpr (sizeof...(Values) == 1)
      return (made<Values>(0), ...);
    else if constexpr (sizeof...(Values) == 2)
      return both(std::index_sequence<0, 1>{});
  }

private:
  template <class Value>
  Value made(size_t index) {
    Value result;
    result.tag_ = std::move(work_.results[index]);
    result.memory_ = storage{&on_, work_.rank, work_.memory[index]};
    return result;
  }
  template <size_t... I>
  std::tuple<Values...> both(std::index_sequence<I...>) {
    return {made<Values>(I)...};
  }

  executor& on_;
  pending work_;
  std::string error_;
};

} // namespace ringmaster::training
