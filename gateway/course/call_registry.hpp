#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>

namespace ringmaster::gateway {

class course_call;

/// The calls under way at one listener: limits their number and the bytes of their messages, and ends them when the
/// listener stops. Thread-safe. Held by a shared_ptr: calls may end after their listener.
class call_registry : public std::enable_shared_from_this<call_registry> {
public:
  /// A call's place, until it has ended and its answer is sent.
  class ticket {
  public:
    explicit ticket(std::shared_ptr<call_registry> owner) : owner_(std::move(owner)) {}
    ticket(const ticket&) = delete;
    ticket& operator=(const ticket&) = delete;
    ~ticket();

    /// Adds bytes of a request or an answer. Errors: too_many, with the limit.
    caf::error reserve(uint64_t bytes) { return hold(bytes_ + bytes); }
    /// From now on it has this many bytes under way, instead of those before. Errors: the same; then nothing changes.
    caf::error hold(uint64_t bytes);
    call_registry& owner() const noexcept { return *owner_; }

  private:
    const std::shared_ptr<call_registry> owner_;
    uint64_t bytes_ = 0;
  };
  using ticket_pointer = std::shared_ptr<ticket>;

  call_registry(uint64_t calls_max, uint64_t bytes_max) : calls_max_(calls_max), bytes_max_(bytes_max) {}
  call_registry(const call_registry&) = delete;
  call_registry& operator=(const call_registry&) = delete;

  /// Errors: too_many, with the limit; unreachable after `close`.
  caf::expected<ticket_pointer> admit();
  /// Answers the pending calls with an error, and admits no more.
  void close();

private:
  friend class course_call;

  void add(course_call* call);
  void remove(course_call* call);

  const uint64_t calls_max_, bytes_max_;
  std::mutex mutex_; ///< Of all below; held while `close` answers calls.
  std::unordered_set<course_call*> pending_;
  uint64_t calls_ = 0, bytes_ = 0; ///< Of tickets.
  bool closed_ = false;
};

} // namespace ringmaster::gateway
