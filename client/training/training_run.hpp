#pragma once

#include "actors/training/trainer_settings.hpp"
#include "client/process_group.hpp"
#include "training/checkpoints/checkpoint_directory.hpp"
#include "training/data/data_set.hpp"
#include "training/layers/softmax_loss.hpp"
#include "training/measured/profiled_costs.hpp"

#include <caf/actor_system.hpp>

#include <chrono>
#include <filesystem>
#include <optional>

namespace ringmaster::training {

/// What a program trains, and for how long. The job has the model and its strategy; the data is set here.
struct run_settings {
  training_job job;
  opened_data data;
  uint32_t ranks = 1;
  uint64_t epochs = 1;
  bool deterministic = false;
  bool mirror = true;                ///< See trainer_settings.
  std::filesystem::path checkpoints; ///< A directory of this run alone; empty: no checkpoints.
  uint32_t checkpoints_kept = 3;
  bool resume = false;                                    ///< From the newest checkpoint.
  uint32_t held_out_max = UINT32_MAX;                     ///< Samples on which an epoch is evaluated.
  uint64_t memory_bytes = 0;                              ///< Of each device, for values; 0: all.
  caf::timespan devices_limit = std::chrono::seconds{10}; ///< To wait for enough devices.
  caf::timespan patience = std::chrono::seconds{60};      ///< A rank without news for this long hangs.
  caf::timespan replacement_limit = std::chrono::seconds{
    60};                                                    ///< For devices in place of lost ones; at most `patience`.
  caf::timespan operation_limit = std::chrono::seconds{30}; ///< For a collective, and for the coordinator's answers.
  bool profiles = false;                                    ///< See run_outcome::profiles.
  std::optional<uint64_t> kill_at; ///< In this step, 1 or later, or just after it, a device is killed.
};

/// After an epoch.
struct epoch_report {
  uint64_t epoch = 0;      ///< The number of epochs done, from 1 on.
  uint64_t first_step = 0; ///< Loss, accuracy and speed are of the steps from here on: all, unless it was resumed.
  uint64_t steps = 0;      ///< Since the start.
  double loss = 0;         ///< Mean over the epoch's samples, as they were trained.
  double accuracy = 0;
  loss_sums held_out;
  double samples_a_second = 0;
  uint32_t ranks = 0; ///< Of its last step.
  uint32_t ranks_least = 0, ranks_most = 0;
};

struct run_outcome;

struct run_watcher {
  std::function<void(const step_report&)> step_done = [](auto&) {};
  std::function<void(const epoch_report&)> epoch_done = [](auto&) {};
  std::function<void(const std::string&)> note = [](auto&) {};
  /// Before a run that ends early returns why: what it has done.
  std::function<void(const run_outcome&, const caf::error& why)> broken_off = [](auto&, auto&) {};
  /// Called about ten times a second: whether the run is to stop early. Once true, it stays true.
  std::function<bool()> stops = [] { return false; };
};

/// Some steps, measured operation by operation.
struct step_profiles {
  uint32_t ranks = 0;               ///< Of each.
  uint64_t first = 0, last = 0;     ///< Their numbers.
  std::vector<measured_step> steps; ///< Empty: no step was measured.
};

struct run_outcome {
  uint64_t steps = 0, steps_an_epoch = 0;
  uint64_t began_at = 0;   ///< The step that it was resumed at.
  uint64_t steps_done = 0; ///< Since the start of the first run: the number of the next step.
  std::vector<epoch_report> epochs;
  uint64_t bytes_peak = 0, bytes_needed = 0; ///< Of a rank, and of its device; as in step_report.
  step_profiles profiles;
  double step_seconds = 0;                 ///< The median of all steps after the first epoch, if there are any.
  std::shared_ptr<const training_job> job; ///< As it was trained.
  model_snapshot image;                    ///< The model after the last step.
  caf::error not_kept;                     ///< Why it is in no checkpoint, if it should be.
};

/// Whether data, model, strategy and ranks are given, and match. `train` checks this first. Errors: invalid_argument.
caf::error check(const run_settings& x);

/// The same by the processes of a group, each of which is one rank. All of them call it with the same settings
/// (a rank with others is refused), whose `ranks` is the group's size. Rank 0's process returns
/// the outcome, the others nothing when their rank has finished. The configuration needs the messages of
/// actors/training/type_ids.hpp.
caf::expected<std::optional<run_outcome>> train_together(caf::actor_system& system, process_group& group,
                                                         run_settings settings, const run_watcher& watcher = {});

/// Trains on free devices of a cluster, and returns at the end; the watcher is called in this thread. Every wait has a
/// limit: a rank that does not answer is replaced, or the run ends with an error. Errors: invalid_argument for a model
/// that does not match the data or the strategy, or for checkpoints of an earlier run without `resume`; in_use, if
/// another run writes to the same folder; too_few_devices; those of the checkpoints; aborted if the watcher stops it,
/// after the latest model was written; the trainer's.
caf::expected<run_outcome> train(caf::actor_system& system, coordinator_actor coordinator, run_settings settings,
                                 const run_watcher& watcher = {});

} // namespace ringmaster::training
