#pragma once

#include "messages/types.pb.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace ringmaster {

/// Suspects one device of hanging or being too slow, from its answers to progress requests: X of the last Y were
/// late. A request is late when no answer came within `late_after`, or when the answer says that the device has owed
/// its next move for longer than that. It counts once, when that is known. Pure: the caller passes the time in, and
/// the verdict carries its reason.
class suspicion {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::nanoseconds;

  struct options {
    duration interval = std::chrono::milliseconds{100}; ///< Between two requests.
    /// Between two requests to devices with nothing in flight; 0: these are not asked.
    duration idle_interval = std::chrono::milliseconds{300};
    duration late_after = std::chrono::milliseconds{500};
    /// A process that is silent as a whole for longer is lost; for less, it has paused.
    duration pause_max = std::chrono::milliseconds{1000};
    uint32_t late = 3;   ///< X, 1..window
    uint32_t window = 5; ///< Y, 1..64
  };

  struct verdict {
    bool suspected = false;
    /// Empty if none is late: "3 of its last 5 answers were late (no answer to request 17 for 1.2 s)"
    std::string reason;
    proto::Suspicion evidence; ///< The same for programs.
  };

  explicit suspicion(options opts);

  /// A request went out. Each has a number of its own.
  void on_request(uint64_t number, time_point now);
  /// `busy_for`: how long the device has owed the next move, zero if it waits for another device. An answer to a
  /// request that has been counted as late changes nothing.
  void on_answer(uint64_t number, duration busy_for, time_point now);

  /// Judges at `now`; call it at each tick, every `interval`.
  verdict evaluate(time_point now);
  /// The observer itself was paused for so long until now: that counts for no request. If it is more than `late_after`,
  /// what is pending starts again, and how long a device had been busy before counts no more.
  void excuse(duration pause, time_point now);

  /// Its last answers, and how many of them were late.
  struct record {
    uint32_t late = 0;
    uint32_t answers = 0; ///< 0..window
  };
  record latest_answers() const;

  /// The device could not answer until now, and not by its own fault: what is pending starts again, and earlier late
  /// answers do not count.
  void start_afresh(time_point now);

private:
  struct request {
    uint64_t number = 0;
    time_point since;
  };

  /// Why a request was late.
  struct lateness {
    proto::Suspicion::Cause cause = proto::Suspicion::UNKNOWN;
    request late;
    duration after{}; ///< For an answer.
  };

  void forgive_pending(time_point now);
  void expire(time_point now);
  void count(bool late);
  proto::Suspicion evidence_at(time_point now) const;

  options options_;
  std::deque<request> pending_;           ///< Oldest first.
  std::deque<bool> outcomes_;             ///< The last Y; true: late.
  lateness latest_;                       ///< Meaningful if an outcome is late.
  std::optional<time_point> fresh_since_; ///< The end of the observer's last pause.
};

/// "3 of its last 5 answers were late (no answer to request 17 for 1.2 s)", "its process has not answered for 1.1 s".
std::string text_of(const proto::Suspicion& x);

} // namespace ringmaster
