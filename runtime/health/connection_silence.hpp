#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace ringmaster {

/// What the operating system knows of a TCP connection (Linux, TCP_INFO). Without any of it: all 0.
struct tcp_progress {
  bool awaits_acknowledgement = false;                ///< Of bytes that were sent.
  bool retransmits = false;                           ///< They have been sent more than once.
  std::chrono::milliseconds since_sent{0};            ///< Since it has sent anything, retransmissions included.
  std::chrono::milliseconds since_acknowledgement{0}; ///< Since any acknowledgement came.
  std::chrono::milliseconds pause{0};                 ///< Between its last and its next retransmission.
  std::chrono::milliseconds since_received = std::chrono::hours{24}; ///< Since any byte came.
};

/// Whether a connection on which nothing has come for `silence` is to be closed. The limit alone would close
/// connections over a network that is back: TCP doubles the pause after each retransmission in vain (RFC 6298), so that
/// after an interruption of 14 s it may try again only at 25 s. A connection is given up when a retransmission at the
/// limit or later has not been answered either, and at twice the limit in any case. Bytes of a message that is not
/// complete yet break the silence, too. Pure.
inline bool is_silent_too_long(std::chrono::nanoseconds silence, std::chrono::nanoseconds limit,
                               const tcp_progress& tcp) {
  constexpr std::chrono::seconds round_trip{1};
  silence = std::min<std::chrono::nanoseconds>(silence, tcp.since_received);
  if (silence < limit)
    return false;
  if (!tcp.awaits_acknowledgement || !tcp.retransmits || silence >= 2 * limit + round_trip)
    return true;
  const auto tried_at = silence - tcp.since_sent;
  const auto tried_before = tried_at - tcp.pause; // or later, where the pauses grow
  return tried_before >= limit || (tried_at >= limit && tcp.since_sent >= round_trip);
}

/// Whether the way between two nodes counts as lost: the other host's system has acknowledged nothing for so long, also
/// not what was sent again. Without a retransmission the latest bytes have just left, by a process that was paused.
inline bool is_way_lost(std::chrono::milliseconds limit, const tcp_progress& tcp) {
  return limit.count() > 0 && tcp.awaits_acknowledgement && tcp.retransmits && tcp.since_acknowledgement >= limit;
}

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
