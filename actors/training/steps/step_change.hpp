#pragma once

#include "actors/training/steps/attempt_teardown.hpp"
#include "actors/training/steps/rank_roster.hpp"
#include "actors/training/steps/run_progress.hpp"
#include "messages/errc.hpp"

#include <caf/actor_clock.hpp>

#include <optional>
#include <variant>

namespace ringmaster::training {

/// Which step a training run is at, who runs it, and when it is given up, repeated or finished.
///
///   gathering --all ranks ready--> stepping --step committed--> stepping, the next step
///                                  ^      |
///       ranks and coordinator have |      | a rank is lost, joins or leaves; a step fails or makes no progress;
///       answered; it is resumed    |      v too few ranks
///                                  recovering
///
///   stepping, recovering --last step committed--> finishing --snapshot taken--> over
///   finishing --a rank is lost--> recovering
///   any phase --end--> over
///
/// A step is done when all of its ranks have finished it. Until then no rank has changed what the step started with:
/// when a rank is lost, the others give the attempt up, and a new attempt starts with the ranks that are left.
///
/// Events go in, with the time where it matters; decisions come out, in the order in which the caller carries them out
/// before it reports the next event. No clock, no actor. Invariants, which
/// tests/actors/training/steps/step_orders_test.cpp checks in every order of events: no attempt starts before every
/// rank that is alive has given up the one before, and every communicator has ended; attempts only rise; a device that
/// was lost takes part no more; the step only falls when its model is lost; nothing starts after the end.
class step_change {
public:
  using time_point = caf::actor_clock::time_point;
  using phase = run_progress::phase;

  struct rules {
    uint64_t steps = 1;
    uint32_t attempts_max = 30; ///< Of one step.
    bool starts_ranks = true;   ///< As in rank_roster.
    caf::timespan patience{};
    caf::timespan replacement_limit{}; ///< For devices in place of lost ones.
  };

  /// Where the model as of the step is, when an attempt is resumed.
  struct model_location {
    caf::error missing;                 ///< None: ranks and host have all of it.
    caf::error missing_without_leavers; ///< The same without ranks that leave.
    uint64_t snapshot_step = 0;         ///< Of the host's snapshot; 0: none, the first weights.
  };

  // -- decisions --

  struct note {
    std::string text; ///< For the user.
  };
  /// The ranks of `ranks().world()` start this attempt.
  struct start_step {
    uint64_t attempt = 0;
    uint64_t step = 0;
  };
  /// These ranks give their attempt up: `gave_up` answers for each of them, and `coordinator_answered` says whether the
  /// coordinator still has its device.
  struct abandon_step {
    uint64_t attempt = 0;
    std::vector<device_id> devices;
  };
  /// `communicators_closed` answers.
  struct close_communicators {
    uint64_t attempt = 0;
  };
  /// `resume` is called after this time.
  struct resume_later {
    uint64_t attempt = 0;
    caf::timespan delay{};
  };
  /// The host takes a snapshot of what ranks that leave have; `handed_over` answers.
  struct hand_over {
    uint64_t attempt = 0;
  };
  /// The rank exits in good order, and frees its memory.
  struct release_rank {
    device_id device;
  };
  /// The rank is stopped, for this reason.
  struct stop_rank {
    device_id device;
    std::string why;
  };
  struct search_devices {
    bool required = false; ///< The run ends if there are none.
  };
  /// A step was committed: the host may take a snapshot.
  struct take_snapshot {
    uint64_t step = 0;
  };
  /// The host's snapshot may lack parts because a rank was lost.
  struct repeat_snapshot {
    uint64_t step = 0;
  };
  /// All steps are done: a snapshot of the model is taken; `end` answers, or `give_up` if parts are missing.
  struct take_final_snapshot {
    uint64_t attempt = 0;
  };
  /// The run ends because of this as soon as the model as of `step` is saved, if it has to be; `end` answers.
  struct end_with_snapshot {
    caf::error why;
    uint64_t step = 0;
    bool repeated = false; ///< It was asked before.
    bool at_once = false;  ///< The ranks can be asked for their parts now.
  };
  /// The same, now that ranks can be asked.
  struct take_last_snapshot {};
  /// None: all steps are done.
  struct end_run {
    caf::error problem;
  };
  using decision = std::variant<note, start_step, abandon_step, close_communicators, resume_later, hand_over,
                                release_rank, stop_rank, search_devices, take_snapshot, repeat_snapshot,
                                take_final_snapshot, end_with_snapshot, take_last_snapshot, end_run>;
  using decisions = std::vector<decision>;

  step_change(std::shared_ptr<const training_job> job, uint32_t wanted, uint64_t first_step, rules its);

  // -- state --

  const run_progress& progress() const { return progress_; }
  /// Of the latest attempt that was given up.
  const attempt_teardown& teardown() const { return teardown_; }
  const rank_roster& ranks() const { return ranks_; }
  rank_roster& ranks() { return ranks_; }
  std::string state_text() const;

  // -- events --

  decisions ready(device_id device, time_point now);
  /// The rank cannot take part. `is_loss`: its device is lost, or it did not answer in time.
  decisions refused(device_id device, const caf::error& problem, bool is_loss, time_point now);
  /// The rank's actor has exited.
  decisions rank_exited(device_id device, const caf::error& why, bool may_return, time_point now);
  /// The coordinator says that the device is lost, or the rank does not answer.
  decisions device_lost(device_id device, const caf::error& lost, time_point now);
  /// All ranks that have not become ready are left out.
  decisions gathering_timed_out(time_point now);
  /// A rank of the attempt cannot finish the step.
  decisions rank_failed(const caf::error& why);
  /// What the attempt needs has failed. `why` none: ranks join or leave.
  decisions give_up(const caf::error& why);
  decisions gave_up(device_id device, uint64_t attempt);
  decisions coordinator_answered(uint64_t attempt, device_id device, const caf::error& lost, time_point now);
  decisions communicators_closed(uint64_t attempt, const caf::error& problem);
  /// A delay that `resume_later` asked for is over.
  decisions resume(uint64_t attempt, const model_location& model, time_point now);
  /// Ranks that leave have handed over what they have, or could not; the caller resumes.
  decisions handed_over(uint64_t attempt, const caf::error& problem);
  /// All ranks of the step have finished it; `made` has the parts of the model that each has now.
  decisions committed(std::vector<std::vector<kept_part>> made, time_point now);
  decisions asked_to_leave(device_id device, std::string_view why);
  /// Drains can be cancelled: only ranks of these devices still leave.
  void keep_leaving(const std::set<device_id>& devices);
  /// The run is to end with the model as it is; the second time at once.
  decisions stop(const caf::error& why);
  /// The ranks' programs cannot be run.
  decisions program_failed(const caf::error& why);
  /// `problem` none: all steps are done.
  decisions end(const caf::error& problem);

private:
  /// The coordinator and others know of a rank that failed before the next attempt starts, in most cases.
  static constexpr caf::timespan settle_time = std::chrono::milliseconds{20};
  static constexpr caf::timespan look_again = std::chrono::milliseconds{100};

  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }
  /// What holds between any two events.
  void check() const;
  void all_gathered(decisions& out, time_point now);
  void start(decisions& out, time_point now);
  void await_devices(decisions& out, time_point now);
  void give_up(decisions& out, const caf::error& why);
  /// A rank is lost that does not run the step.
  void bystander_lost(decisions& out, device_id device);
  void gave_up(decisions& out, device_id device);
  void resume_if_torn_down(decisions& out);
  /// Whether the attempt waits for ranks that leave. `missing`: of the model, when they have left.
  bool let_leave(decisions& out, const model_location& model, caf::error& missing);
  void release(decisions& out, const caf::error& problem);
  void find_model(decisions& out, const caf::error& missing, uint64_t snapshot_step);
  void finish(decisions& out);
  void end_with_model(decisions& out, const caf::error& why);
  void end(decisions& out, const caf::error& problem);

  std::shared_ptr<const training_job> job_;
  rules rules_;
  rank_roster ranks_;
  run_progress progress_;
  attempt_teardown teardown_;
  bool joins_ = false;                    ///< New ranks are ready, and take part after this step.
  uint64_t repeated_at_ = 0;              ///< The attempt at which the snapshot was repeated last.
  std::optional<time_point> short_since_; ///< Since when there are too few ranks for any world.
  caf::error latest_problem_;             ///< Of an attempt; none: none has failed.
};

} // namespace ringmaster::training
