#pragma once

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

namespace ringmaster::training {

namespace detail {

template <class Result>
struct task_result {
  std::optional<Result> value;
  void return_value(Result x) { value = std::move(x); }
};

template <>
struct task_result<void> {
  void return_void() {}
};

} // namespace detail

/// A coroutine that begins when it is awaited or resumed, and then goes on with the one that awaits it: a part of a strategy
/// by a name of its own.
template <class Result>
class [[nodiscard]] task {
public:
  struct promise_type : detail::task_result<Result> {
    struct back {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
        auto next = done.promise().waiter;
        return next ? next : std::noop_coroutine();
      }
      void await_resume() noexcept {}
    };

    task get_return_object() { return task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    back final_suspend() noexcept { return {}; }
    void unhandled_exception() { std::abort(); } // operations do not throw

    std::coroutine_handle<> waiter;
  };

  task() = default;
  task(task&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~task() {
    if (body_)
      body_.destroy();
  }

  std::coroutine_handle<> body() const { return body_; }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    body_.promise().waiter = waiter;
    return body_;
  }
  Result await_resume() {
    if constexpr (!std::is_void_v<Result>)
      return std::move(*body_.promise().value);
  }

private:
  explicit task(std::coroutine_handle<promise_type> body) : body_(body) {}

  std::coroutine_handle<promise_type> body_;
};

} // namespace ringmaster::training
