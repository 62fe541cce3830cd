#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

namespace ringmaster {

/// The time for which this process could run: the steady clock without the periods in which the process was paused
/// (SIGSTOP, Ctrl-Z, a suspended job, a debugger, a frozen container). Every limit on how long a peer may stay silent
/// is measured with it. After a pause the answers of the peers may still be in the sockets, and the peers may have been
/// paused as well, so the pause says nothing about them.
///
/// A thread ticks every `tick`. Where the last tick is older than `pause_min`, the process has been paused since then:
/// the clock advanced by `pause_min` at most. All actor systems of a process tick, and so may others (`ticking`).
/// While no thread ticks, the clock advances with the steady clock. It never goes back. Thread-safe.
class awake_clock {
public:
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<awake_clock, duration>;
  static constexpr bool is_steady = true;

  static constexpr std::chrono::milliseconds tick{100};
  static constexpr std::chrono::milliseconds pause_min{500};

  static time_point now() noexcept { return time_point{read()}; }
  /// The same as a time of CAF's clock, whose type is the steady clock's.
  static std::chrono::steady_clock::time_point actor_now() noexcept {
    return std::chrono::steady_clock::time_point{read()};
  }
  /// The sum of all pauses so far.
  static duration paused() noexcept { return duration{paused_ns.load(std::memory_order_acquire)}; }

  /// The process runs. Called by the threads that tick.
  static void note_tick() noexcept {
    std::scoped_lock lock{guard};
    const auto real_ns = steady_ns();
    take_pause(real_ns);
    ticked_ns.store(real_ns, std::memory_order_release);
  }

  /// While one lives, a thread calls `note_tick` every `tick`.
  class ticking {
  public:
    ticking() {
      std::scoped_lock lock{guard};
      const auto real_ns = steady_ns();
      if (threads > 0)
        take_pause(real_ns);
      ticked_ns.store(real_ns, std::memory_order_release);
      ++threads;
    }
    ~ticking() { --threads; }
    ticking(const ticking&) = delete;
    ticking& operator=(const ticking&) = delete;
  };

private:
  static int64_t steady_ns() noexcept {
    return std::chrono::duration_cast<duration>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  static duration read() noexcept {
    for (;;) {
      const auto before_ns = paused_ns.load(std::memory_order_acquire);
      const auto real_ns = steady_ns();
      if (threads > 0 && real_ns - ticked_ns.load(std::memory_order_acquire) > duration{pause_min}.count()) {
        std::scoped_lock lock{guard}; // this thread runs again before the one that ticks
        const auto again_ns = steady_ns();
        take_pause(again_ns);
      } else if (paused_ns.load(std::memory_order_acquire) == before_ns) {
        return duration{real_ns - before_ns};
      }
    }
  }

  /// Under the lock.
  static void take_pause(int64_t real_ns) noexcept {
    const auto too_long_ns = real_ns - ticked_ns.load(std::memory_order_relaxed) - duration{pause_min}.count();
    if (threads == 0 || too_long_ns <= 0)
      return;
    paused_ns.fetch_add(too_long_ns, std::memory_order_release); // first: a reader that sees the tick sees the pause
    ticked_ns.store(real_ns, std::memory_order_release);
  }

  static inline std::mutex guard;
  static inline std::atomic<int64_t> ticked_ns{0}, paused_ns{0};
  static inline std::atomic<int> threads{0};
};

} // namespace ringmaster
