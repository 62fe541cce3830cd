#include "training/language/turns.hpp"

namespace ringmaster::training {

struct turns::beginning {
  turns& of;
  std::coroutine_handle<> first, second;
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> mine) const {
    of.behind_ = mine;
    of.other_ = second;
    return first;
  }
  void await_resume() const noexcept {}
};

/// Of a part, which is not resumed.
struct turns::ending {
  turns& of;
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const {
    return of.any() ? std::exchange(of.other_, nullptr) : of.behind_;
  }
  void await_resume() const noexcept {}
};

strategy turns::part(strategy body) {
  co_await std::move(body);
  co_await ending{*this};
}

strategy turns::both(strategy first, strategy second) {
  auto one = part(std::move(first)), other = part(std::move(second));
  co_await beginning{*this, one.body(), other.body()};
}

} // namespace ringmaster::training
