#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace ringmaster {

/// Devices hang one by one. Where more than half of them answer late at once, the hosts have too much to do, or their
/// network: to give them up would leave nobody. They get ten times as long. Pure: the caller passes the time in.
class overload {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  /// `late_after`: when one answer is late.
  explicit overload(duration late_after) : patience_(10 * late_after) {}

  struct verdict {
    bool excused = false; ///< The suspects are not to be believed, for now.
    bool began = false;   ///< Since this look.
  };
  /// Judges `suspects` of the `watched` devices; to be called at each look.
  verdict look(size_t suspects, size_t watched, time_point now) {
    if (2 * suspects <= watched) {
      since_.reset();
      return {};
    }
    bool began = !since_;
    if (began)
      since_ = now;
    return {now - *since_ < patience_, began};
  }

  duration patience() const { return patience_; }

private:
  duration patience_;
  std::optional<time_point> since_;
};

} // namespace ringmaster
