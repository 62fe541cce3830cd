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

/// The settings of the run's trainer.
trainer_settings trainer_settings_of(const run_settings& x);

/// The samples of a step, of `data_samples`, for the journal.
proto::TrainingStep record_of(const training_job& job, uint32_t data_samples, uint64_t steps_an_epoch, uint64_t step);

/// A run from start to end, in the caller's thread.
class active_run {
public:
  active_run(caf::actor_system& system, coordinator_actor coordinator, run_settings settings,
             const run_watcher& watcher)
    : system_(system), coordinator_(std::move(coordinator)), settings_(std::move(settings)), watcher_(watcher),
      directory_(settings_.checkpoints, settings_.checkpoints_kept) {}

  /// `leads`: this process has the trainer, and alone writes checkpoints. `with_others`: each rank is a process, and
  /// their settings and data are compared.
  caf::error prepare(bool leads, bool with_others);
  /// `group`: the processes of the ranks; null: all ranks are in this process.
  caf::expected<run_outcome> run(process_group* group);
  /// Runs the rank of this process until the run has ended.
  caf::error play(process_group& group);

private:
  /// Claims the folder of checkpoints, which must be empty unless the run resumes from it.
  caf::error begin_in_folder();
  caf::error resume();
  caf::error find_devices(trainer_settings& to, process_group* group);
  rank_settings rank_with(trainer_actor with) const;
  caf::expected<trainer_actor> find_trainer(const process_group& group);
  void step_done(const step_report& x);
  void profiled(const std::vector<event>& x, double seconds);
  void kill_one();
  /// Calls code of the program. What it throws ends the run later: the trainer calls this object until it has exited.
  void guarded(const std::function<void()>& what);
  /// Handles the trainer's events, or waits a moment for one.
  void take_events();
  /// Asks the trainer to stop, if the program wants that, or there is a problem.
  void stop_if_requested();
  /// Handles events until the trainer has exited, and runs this process's rank, if it has one.
  void follow(own_rank* mine);
  /// Computes the measurements so far.
  void sum_up();
  void image_taken(const model_snapshot& x);
  void report_epoch(const model_snapshot& x);
  /// `next`: when the next checkpoint follows, as the end of a sentence.
  void save(const model_snapshot& x, const std::string& next);
  /// Evaluates the model. Nothing, and problem_, if its outputs are not finite, or held-out data cannot be read.
  std::optional<loss_sums> tried(const model_snapshot& x, uint32_t samples_max);

  caf::actor_system& system_;
  coordinator_actor coordinator_;
  run_settings settings_;
  const run_watcher& watcher_;
  checkpoint_directory directory_;
  std::shared_ptr<const training_job> job_;
  std::vector<std::string> job_settings_; ///< As requested_settings returns them.
  /// Unique, for the journal; `training_` is the number of the first run of this training.
  const uint64_t number_ = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  uint64_t training_ = number_;
  model_snapshot from_;
  std::vector<device_id> devices_; ///< That it started with.
  run_outcome outcome_;
  trainer_actor trainer_;
  event_queue events_{[this] { caf::anon_send(trainer_, atom::resume_v); }};
  std::optional<caf::expected<model_snapshot>> ended_;
  std::atomic<bool> killed_{false}; ///< The device of `kill_at` has been killed.
  step_report latest_;
  std::vector<double> first_seconds_, seconds_; ///< Of steps of the first epoch, and of all others.
  std::vector<size_t> profiled_;                ///< For each of outcome_.profiles, the index of its seconds.
  std::map<uint64_t, step_report> epoch_steps_; ///< By number.
  caf::error problem_;                          ///< Why the run ends early.
  bool stopped_ = false;                        ///< The trainer was asked to stop.
};

} // namespace ringmaster::training
