#pragma once

#include "gateway/http/state/json.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::gateway {

/// "event: delta\ndata: {...}\n\n": an event as the text/event-stream format has it.
std::string event_text(const std::string& name, const json& data);

/// Gives each event to all readers. An event is written once and shared; a reader that falls behind loses its place
/// and delays no other. Thread-safe.
class event_hub {
public:
  struct limits {
    size_t readers_max = 32;
    size_t events_max = 64; ///< That a reader may be behind.
  };
  using text = std::shared_ptr<const std::string>;

  explicit event_hub(limits most) : limits_(most) {}

  /// `greeting` writes what a reader must get first from now on; the events come after it.
  void publish(std::vector<std::string> events, std::function<text()> greeting);
  /// Readers get the rest and stop.
  void close();

  const limits& most() const { return limits_; }
  size_t readers() const;
  uint64_t refused() const { return refused_; }
  uint64_t dropped() const { return dropped_; }

  /// One reader. Owned by one thread; it is released in the destructor.
  class reader {
  public:
    ~reader();
    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;

    enum class state : uint8_t { open, too_slow, closed };
    struct batch {
      std::vector<text> events; ///< May be empty: the time has passed.
      state now = state::open;
    };
    /// Waits for events. The first batch is the greeting.
    batch next(std::chrono::milliseconds within);

  private:
    friend class event_hub;
    reader(event_hub& hub, uint64_t at, std::function<text()> greeting)
      : hub_(hub), at_(at), greeting_(std::move(greeting)) {}

    event_hub& hub_;
    uint64_t at_; ///< The number of the next event.
    std::function<text()> greeting_;
  };

  /// None: there are too many readers, or the hub is closed. The hub must outlive the reader.
  std::unique_ptr<reader> open();

private:
  const limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<text> events_;
  uint64_t first_ = 0; ///< The number of the oldest event.
  std::function<text()> greeting_;
  size_t readers_ = 0;
  bool closed_ = false;
  std::atomic<uint64_t> refused_ = 0, dropped_ = 0;
};

} // namespace ringmaster::gateway
