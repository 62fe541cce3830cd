#pragma once

#include "runtime/training/executor.hpp"
#include "runtime/training/task.hpp"

#include <memory>
#include <tuple>

namespace ringmaster::training {

/// What one rank does in a training step: a coroutine that an executor resumes.
using strategy = task<void>;

/// An operation to wait for with co_await, which begins it and gives its results: nothing, a value, or a tuple of two.
/// Where it is refused or fails the strategy does not go on; its executor has the error.
template <class... Values>
class [[nodiscard]] operation {
public:
  /// With an error the operation is refused.
  operation(executor& on, pending work, std::string error)
    : on_(on), work_(std::move(work)), error_(error.empty() ? nullptr : std::make_unique<std::string>(std::move(error))) {}

  bool await_ready() { return accepted() && on_.begin(work_); }
  void await_suspend(std::coroutine_handle<> waiter) { work_.waiter = waiter; }
  auto await_resume() {
    if constexpr (sizeof...(Values) == 1)
      return (made<Values>(0), ...);
    else if constexpr (sizeof...(Values) == 2)
      return both(std::index_sequence<0, 1>{});
  }

private:
  template <class...>
  friend class handle;

  bool accepted() {
    if (!error_)
      return true;
    on_.fail(work_.rank, std::move(*error_));
    return false;
  }
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
  std::unique_ptr<std::string> error_; ///< Rare, so it takes little room.
};

/// An operation that goes on aside, on the rank's second stream and in the order in which they are begun there; co_await
/// takes its results. It must be waited for.
template <class... Values>
class [[nodiscard]] handle {
public:
  explicit handle(operation<Values...> x) : operation_(std::make_unique<operation<Values...>>(std::move(x))) {
    operation_->work_.aside = true;
    if (operation_->accepted())
      operation_->on_.begin(operation_->work_);
  }
  handle() = default;
  handle(handle&&) = default;
  handle& operator=(handle&&) = default;
  ~handle() {
    if (operation_ && !waited_)
      operation_->on_.fail(operation_->work_.rank, fmt_unwaited());
  }

  bool valid() const { return operation_ != nullptr; }
  bool await_ready() {
    waited_ = true;
    return operation_->on_.await(operation_->work_);
  }
  void await_suspend(std::coroutine_handle<> waiter) { operation_->work_.waiter = waiter; }
  auto await_resume() {
    auto done = std::move(operation_);
    return done->await_resume();
  }

private:
  std::string fmt_unwaited() const {
    return "rank " + std::to_string(operation_->work_.rank) + " has never waited for its " +
           std::string{name_of(operation_->work_.what)} + " of the " + text_of(operation_->work_.argument);
  }

  std::unique_ptr<operation<Values...>> operation_;
  bool waited_ = false;
};

} // namespace ringmaster::training
