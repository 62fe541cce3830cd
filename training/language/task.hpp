#pragma once

#include <coroutine>
#include <cstddef>
#include <new>
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

namespace detail {

/// Memory of coroutines that come and go, by size: what one has left the next one takes. A thread's own.
class frame_pool {
public:
  static void* take(size_t size) {
    auto& free = lists()[slot_of(size)];
    if (size > largest || free == nullptr)
      return ::operator new(size > largest ? size : (slot_of(size) + 1) * granule);
    return std::exchange(free, *static_cast<void**>(free));
  }
  static void give(void* x, size_t size) noexcept {
    if (size > largest) {
      ::operator delete(x);
      return;
    }
    auto& free = lists()[slot_of(size)];
    *static_cast<void**>(x) = std::exchange(free, x);
  }

private:
  static constexpr size_t granule = 256, largest = 4096;
  static constexpr size_t slot_of(size_t size) { return size > largest ? 0 : (size - 1) / granule; }

  struct all {
    void* first[largest / granule]{};
    ~all() {
      for (auto* x : first)
        while (x != nullptr)
          ::operator delete(std::exchange(x, *static_cast<void**>(x)));
    }
  };
  static auto lists() -> void* (&)[largest / granule] {
    thread_local all mine;
    return mine.first;
  }
};

} // namespace detail

/// A coroutine that begins when it is awaited or resumed, and then goes on with the one that awaits it: a part of a
/// strategy by a name of its own.
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
    void unhandled_exception() { throw; } // operations do not throw; any other exception reaches the caller of resume

    static void* operator new(size_t size) { return detail::frame_pool::take(size); }
    static void operator delete(void* x, size_t size) noexcept { detail::frame_pool::give(x, size); }

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
