#pragma once

#include "actors/training/device_queries.hpp"
#include "actors/training/model_snapshots.hpp"
#include "actors/training/part_deliveries.hpp"
#include "actors/training/rank_actors.hpp"
#include "actors/training/run_ending.hpp"
#include "actors/training/step_exchanges.hpp"
#include "actors/training/step_record.hpp"
#include "actors/training/step_results.hpp"
#include "actors/training/steps/patience.hpp"
#include "actors/training/steps/step_change.hpp"
#include "actors/training/trainer_settings.hpp"

#include <deque>
#include <optional>
#include <string>

namespace ringmaster::training {

/// The state of the TRAINER. It receives what ranks and the coordinator report, asks `step_change` what follows, and
/// carries that out. A step is committed when the journal has the one before, so the log of the coordinator's process
/// lacks one step at most when that process exits.
class trainer_state {
public:
  static inline const char* name = "trainer";

  trainer_actor::pointer self = nullptr;

  void start(trainer_settings settings);
  // From ranks.
  void ready(const rank_ready& x);
  void arrived(std::vector<rank_arrival>& all);
  void found(const room_found& x);
  void wanted(const part_wanted& x);
  void finished(const rank_ended& x);
  void failed(const rank_failed& x);
  void alive(const rank_alive& x);
  void leaving(const rank_leaving& x);
  // From the program.
  /// Ends the run with the model as it is; the second time at once.
  void stop();
  /// The watcher can take a step's report again.
  void watcher_has_room();
  // From itself.
  void tick();
  void resume(uint64_t attempt);

private:
  /// Decisions are carried out in their order, also those that follow from carrying one out.
  void carry_out(step_change::decisions all);
  void carry_out(const step_change::start_step& x);
  void carry_out(const step_change::abandon_step& x);
  void carry_out(const step_change::close_communicators& x);
  void carry_out(const step_change::resume_later& x);
  void carry_out(const step_change::hand_over& x);
  void carry_out(const step_change::search_devices& x);
  void carry_out(const step_change::end_run& x);

  caf::actor_clock::time_point now() const { return self->clock().now(); }
  const run_progress& progress() const { return change_->progress(); }
  void add(device_id device);
  void rank_down(const caf::down_msg& x);
  void ask_whether_lost(device_id device, uint64_t attempt);
  /// Whether the message is of the attempt under way.
  bool is_current(uint64_t attempt) const;
  /// Ends the run unless a rank of this step can say that: the sender runs another program.
  bool is_possible(uint32_t rank, bool its_content);
  /// Ends the run if ranks wait for something that never comes.
  bool is_stuck();
  /// Once all ranks have finished the step, and the journal has the one before.
  void commit();
  /// Tells the user what is waited for, if there was no news for a while.
  void warn_of_silence();
  /// What is waited for; none: nothing.
  std::optional<std::string> awaited() const;
  /// Asks the coordinator whether it still has the devices that are waited for: it may have noticed a loss late.
  void ask_again();
  void step_stalled();

  std::shared_ptr<const trainer_settings> settings_;
  std::optional<step_change> change_;
  std::optional<rank_actors> actors_;
  std::optional<patience> patience_;
  std::optional<device_queries> queries_;
  std::optional<model_snapshots> snapshots_;
  std::optional<step_exchanges> exchanges_;
  std::optional<part_deliveries> deliveries_;
  std::optional<step_results> results_;
  std::optional<run_ending> ending_;
  std::optional<step_record> record_;  ///< None: no journal is wanted.
  std::shared_ptr<group_calls> calls_; ///< Of the ranks of the step; null: they have ended.
  std::shared_ptr<const running_step> step_;
  bool watcher_is_full_ = false; ///< The step is finished, and the watcher cannot take its report yet.
  std::deque<step_change::decision> decisions_;
  bool carries_out_ = false;
};

trainer_actor::behavior_type trainer(trainer_actor::stateful_pointer<trainer_state> self, trainer_settings settings);

} // namespace ringmaster::training
