#pragma once

#include <ringmaster/strategy/pending.hpp>
#include <ringmaster/strategy/task.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

namespace ringmaster::training {

/// What one rank does in a training step: a coroutine that an executor resumes.
using strategy = task<void>;

/// An operation to wait for at once with co_await, which begins it and gives its results: nothing, a value, or a tuple
/// of two. Where it is refused or fails the strategy does not go on; its executor has the error.
template <class... Values>
class [[nodiscard]] operation {
public:
  /// Moves an operation that has not begun.
  operation(operation&& other) noexcept
    : on_(other.on_), work_(std::move(other.work_)), error_(std::move(other.error_)), made_at_(other.made_at_),
      begun_(std::exchange(other.begun_, true)) {}
  operation& operator=(operation&&) = delete;
  ~operation() {
    if (!begun_)
      misuse(on_, work_, "has never awaited its");
  }

  bool await_ready() { return accepted() && begin(on_, work_); }
  void await_suspend(std::coroutine_handle<> waiter) { work_.waiter = waiter; }
  /// Called by co_await; the results.
  auto await_resume() {
    check_ended();
    if constexpr (sizeof...(Values) == 1)
      return (made<Values>(0), ...);
    else if constexpr (sizeof...(Values) == 2)
      return both(std::index_sequence<0, 1>{});
  }

private:
  template <class...>
  friend class handle;
  friend class rank;

  operation(executor& on, op what, uint32_t rank) : on_(on) {
    work_.what = what;
    work_.rank = rank;
  }
  /// Refuses the operation unless `holds`; `why` then returns the text. The first error counts. An operation that is
  /// right builds no text and no error: there are millions.
  template <class Why>
  void require(bool holds, Why why) {
    if (!holds && !error_)
      error_ = std::make_unique<std::string>(why());
  }
  /// As it is begun: once, and with its arguments as they were when it was made.
  bool accepted() {
    const bool again = std::exchange(begun_, true), late = detail::changes++ != made_at_;
    if (!error_ && !again && !late)
      return true;
    if (error_)
      refuse(on_, work_, *error_);
    else
      misuse(on_, work_, again ? "has awaited twice its" : "has done something else before it awaited its");
    return false;
  }
  void check_ended() {
    if (!std::exchange(work_.ended, false))
      throw_not_finished(work_);
  }
  template <class Value>
  Value made(size_t index) {
    return {std::move(work_.results[index]), storage{&on_, work_.rank, work_.memory[index]}};
  }
  template <size_t... I>
  std::tuple<Values...> both(std::index_sequence<I...>) {
    return {made<Values>(I)...};
  }

  executor& on_;
  pending work_;
  std::unique_ptr<std::string> error_; ///< Why it is refused; null: it is not.
  uint64_t made_at_ = detail::changes;
  bool begun_ = false;
};

/// An operation that goes on aside, on the rank's second stream and in the order in which they are begun there;
/// co_await takes its results. It must be waited for. What computes stays on the first stream.
template <class... Values>
class [[nodiscard]] handle {
public:
  /// Begins the operation aside.
  explicit handle(operation<Values...> x) : operation_(std::make_unique<operation<Values...>>(std::move(x))) {
    auto& work = operation_->work_;
    work.aside = true;
    auto& on = operation_->on_;
    const bool moves = is_communication(work.what) || work.what == op::offload || work.what == op::fetch;
    if (!moves)
      misuse(on, work, "cannot do aside its");
    if (operation_->accepted())
      begin(on, work);
    if (has_failed(on))
      throw std::logic_error{"the run has failed"}; // or it might begin more and more
  }
  handle() = default;
  handle(handle&&) = default;
  /// Takes another operation; the one it has must have been awaited.
  handle& operator=(handle&& other) noexcept {
    check_waited();
    operation_ = std::move(other.operation_);
    waited_ = other.waited_;
    return *this;
  }
  ~handle() { check_waited(); }

  /// Whether it has an operation.
  bool valid() const { return operation_ != nullptr; }
  /// Called by co_await.
  bool await_ready() {
    if (!operation_)
      throw std::logic_error{"a handle is waited for that is empty, or was waited for before"};
    waited_ = true;
    return await(operation_->on_, operation_->work_);
  }
  void await_suspend(std::coroutine_handle<> waiter) { operation_->work_.waiter = waiter; }
  /// Called by co_await; the results.
  auto await_resume() {
    if (!waited_ || !operation_)
      throw std::logic_error{"a handle's result is taken that is not waited for"};
    auto done = std::move(operation_);
    return done->await_resume();
  }

private:
  void check_waited() {
    if (operation_ && !waited_)
      misuse(operation_->on_, operation_->work_, "has never waited for its");
  }

  std::unique_ptr<operation<Values...>> operation_;
  bool waited_ = false;
};

} // namespace ringmaster::training
