#pragma once

#include "actors/training/steps/rank_roster.hpp"

#include <caf/actor_clock.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ringmaster::training {

/// How long the TRAINER waits for news of a step, when it warns that there is none, and which ranks are silent. Pure:
/// the time is passed in.
class patience {
public:
  using time_point = caf::actor_clock::time_point;

  /// Between two calls of `tick`.
  static constexpr caf::timespan tick_interval = std::chrono::seconds{1};
  /// Without news of a step for this long, the user gets a warning; again after 10, 20, 40 s more.
  static constexpr caf::timespan quiet_max = std::chrono::seconds{5};
  /// A step that stalls this often with the same ranks waits for something that never comes.
  static constexpr uint32_t stalls_max = 3;

  /// `limit`: for any news of a step.
  patience(caf::timespan limit, time_point now) : limit_(limit), news_(now), ticked_(now) {}

  /// How much later than `tick_interval` this call comes: this process was paused, no rank was late. 0 if less than an
  /// interval.
  caf::timespan tick(time_point now);
  /// Something was heard.
  void heard(time_point now);
  /// A rank of the step was heard.
  void heard_of(uint32_t rank, time_point now);
  /// All ranks of a step have just got their orders.
  void step_started(uint32_t ranks, time_point now);
  void step_committed() { stalled_ranks_.clear(); }

  caf::timespan silent(time_point now) const { return now - news_; }
  bool is_over(time_point now) const { return silent(now) >= limit_; }
  /// The step of these ranks has stalled, and is given up for this reason: timed_out; or, if that happened too often
  /// with the same ranks, gave_up. `waiting`: which ranks wait for others, if any do.
  caf::error stalled(uint64_t step, std::span<const rank_roster::member> world,
                     const std::optional<std::string>& waiting);

  /// Whether it is almost time for a warning, so that the coordinator should be asked for lost devices first.
  bool is_quiet(time_point now) const { return silent(now) >= quiet_max - answer_time; }
  /// A warning for the user, if it is time for one; each sets the time of the next. `awaited`: what is waited for.
  /// `recovers`: before the next attempt, not in a step.
  std::optional<std::string> warning(uint64_t step, const std::string& awaited, bool recovers, time_point now);
  bool may_ask() const { return !asked_at_; }
  /// The coordinator was asked for the state of this many devices.
  void asked(size_t devices, time_point now);
  void answered();

  /// "2 ranks have not finished it: rank 1 (device 0x2), last heard 5 s ago, ..."; none: all have. `is_unfinished` by
  /// rank.
  std::optional<std::string> unfinished(std::span<const rank_roster::member> world,
                                        const std::vector<bool>& is_unfinished, time_point now) const;

private:
  static constexpr caf::timespan answer_time = std::chrono::seconds{2};
  static constexpr caf::timespan repeat_interval = std::chrono::seconds{10};

  bool warns(time_point now);

  caf::timespan limit_;
  time_point news_, ticked_;
  std::vector<time_point> heard_; ///< By rank of the step.
  uint32_t stalls_ = 0;           ///< With `stalled_ranks_`, one after the other.
  std::vector<device_id> stalled_ranks_;
  time_point warned_since_{};          ///< The news after which the user was warned last.
  caf::timespan next_warning_{};       ///< After those news.
  std::optional<time_point> asked_at_; ///< When the coordinator was asked, and has not answered yet.
  size_t answers_awaited_ = 0;
};

} // namespace ringmaster::training
