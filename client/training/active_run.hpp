#pragma once

#include "client/training/event_queue.hpp"
#include "client/training/own_rank.hpp"
#include "client/training/training_run.hpp"
#include "training/data/sampler.hpp"

#include <atomic>
#include <map>

namespace ringmaster::training {

/// The order in which a run's steps take its samples. Errors: those of sampler::of.
caf::expected<sampler> order_of(const run_settings& x);

/// What of the settings its trainer goes by.
trainer_settings trainer_settings_of(const run_settings& x);

/// Which of so many samples a step is of, for the journal.
proto::TrainingStep record_of(const training_job& job, uint32_t data_samples, uint64_t steps_an_epoch, uint64_t step);

/// A run from its beginning to its end, in the thread that asked for it.
class active_run {
public:
  active_run(caf::actor_system& system, coordinator_actor coordinator, run_settings settings,
             const run_watcher& watcher)
    : system_(system), coordinator_(std::move(coordinator)), settings_(std::move(settings)), watcher_(watcher),
      directory_(settings_.checkpoints, settings_.checkpoints_kept) {}

  /// `leads`: the trainer is to be in this process, which alone writes the checkpoints. `with_others`: ranks are in
  /// processes of their own, whose settings and data are compared.
  caf::error prepare(bool leads, bool with_others);
  /// `group`: of those who play the ranks, each in a process of its own; null: all are played here.
  caf::expected<run_outcome> run(process_group* group);
  /// Plays the rank of this process until there is no more to do.
  caf::error play(process_group& group);

private:
  /// With the folder of checkpoints: this run's alone, and of no other one unless it goes on with that.
  caf::error begin_in_folder();
  caf::error resume();
  caf::error find_devices(trainer_settings& to, process_group* group);
  rank_settings rank_with(trainer_actor with) const;
  caf::expected<trainer_actor> find_trainer(const process_group& group);
  void step_done(const step_report& x);
  void profiled(const std::vector<event>& x, double seconds);
  void kill_one();
  /// The trainer calls this object until it has ended: what the program throws is the run's problem, and no end of it.
  void guarded(const std::function<void()>& what);
  /// Does what the trainer has to say by now, or waits for it for a moment.
  void take_events();
  /// Has the trainer end, where the program wants that, or something is wrong.
  void stop_if_requested();
  /// The same until it has ended; and plays this process's rank, if it has one.
  void follow(own_rank* mine);
  /// What has been measured by now.
  void sum_up();
  void image_taken(const model_snapshot& x);
  void tell_epoch(const model_snapshot& x);
  /// `next`: when another one comes, in the words of a sentence's end.
  void save(const model_snapshot& x, const std::string& next);
  /// Nothing, and problem_, where the model gives no numbers, or what is held out cannot be read.
  std::optional<loss_sums> tried(const model_snapshot& x, uint32_t samples_max);

  caf::actor_system& system_;
  coordinator_actor coordinator_;
  run_settings settings_;
  const run_watcher& watcher_;
  checkpoint_directory directory_;
  std::shared_ptr<const training_job> job_;
  std::vector<std::string> job_settings_; ///< requested_settings.
  /// No other run's, as the journal has it; and that of the first run of its training.
  const uint64_t number_ = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  uint64_t training_ = number_;
  model_snapshot from_;
  std::vector<device_id> devices_; ///< That it began with.
  run_outcome outcome_;
  trainer_actor trainer_;
  event_queue events_{[this] { caf::anon_send(trainer_, atom::resume_v); }};
  std::optional<caf::expected<model_snapshot>> ended_;
  std::atomic<bool> killed_{false}; ///< Who is to be killed on purpose.
  step_report latest_;
  std::vector<double> first_seconds_, seconds_; ///< Of the steps of the first epoch, and of all others.
  std::vector<size_t> profiled_;                ///< Of outcome_.profiles, where their seconds are.
  std::map<uint64_t, step_report> epoch_steps_; ///< By their number.
  caf::error problem_;                          ///< Why the run ends before its end.
  bool stopped_ = false;                        ///< The trainer has been told to end.
};

} // namespace ringmaster::training
