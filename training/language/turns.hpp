#pragma once

#include "training/language/strategy.hpp"

namespace ringmaster::training {

/// Two parts of a rank's strategy that alternate: the work of one overlaps what the other has under way aside: a
/// micro-batch's forward and another's backward, as one block of DualPipe (DeepSeek-V3, 2024).
class turns {
  /// Suspends, and goes on elsewhere.
  struct passing {
    turns& of;
    bool await_ready() const noexcept { return !of.any(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> mine) const { return std::exchange(of.other_, mine); }
    void await_resume() const noexcept {}
  };
  struct beginning;
  struct ending;

public:
  /// Does both, from the first one's beginning on, until both have ended.
  strategy both(strategy first, strategy second);
  /// Whether there is another part that goes on meanwhile.
  bool any() const { return other_ != nullptr; }
  /// Leaves the turn to the other part, until that leaves it or has ended. Without one it goes on.
  passing pass() { return {*this}; }

private:
  strategy part(strategy body);

  std::coroutine_handle<> other_;  ///< Where the part goes on that has not the turn; null: it has ended.
  std::coroutine_handle<> behind_; ///< Where both have ended.
};

} // namespace ringmaster::training
