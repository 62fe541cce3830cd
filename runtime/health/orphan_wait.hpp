#pragma once

#include <chrono>
#include <optional>

namespace ringmaster {

/// How long a node that has lost its coordinator tries to join it again. Pure: the caller passes the time in.
///
///   joined --lost--> orphaned --joined--> joined
///                    orphaned --`patience` after it was lost--> given up
class orphan_wait {
public:
  using duration = std::chrono::nanoseconds;

  explicit orphan_wait(duration patience) : patience_(patience) {}

  /// Its coordinator was lost. Where it has not been joined since the last loss, that one counts.
  template <class TimePoint>
  void lost(TimePoint now) {
    if (!lost_at_)
      lost_at_ = now.time_since_epoch();
  }
  void joined() { lost_at_.reset(); }

  bool is_orphaned() const { return lost_at_.has_value(); }
  /// Until it gives up; 0: it does.
  template <class TimePoint>
  duration left(TimePoint now) const {
    const duration passed = lost_at_ ? now.time_since_epoch() - *lost_at_ : duration{0};
    return passed < patience_ ? patience_ - passed : duration{0};
  }
  duration patience() const { return patience_; }

private:
  duration patience_;
  std::optional<duration> lost_at_; ///< By the caller's clock.
};

} // namespace ringmaster
