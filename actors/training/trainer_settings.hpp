#pragma once

#include "actors/training/interfaces.hpp"
#include "training/computed/training_job.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ringmaster::training {

/// The whole model as it was before a step: its parts, together all of it.
struct model_snapshot {
  uint64_t step = 0;
  std::map<kept_part, byte_block> parts;
};

/// A step is done, once and for all.
struct step_report {
  uint64_t step = 0;
  double loss = 0;     ///< Mean over its samples.
  double accuracy = 0; ///< Part of them whose label had the largest output.
  uint32_t ranks = 0;
  uint32_t attempts = 1;
  uint64_t bytes_peak = 0;   ///< Of the rank that held most at once, since it began.
  uint64_t bytes_needed = 0; ///< Of a device, for that: free memory lies in pieces.
  double seconds = 0;        ///< From its beginning to its end, at the latest attempt.
  std::chrono::steady_clock::time_point ended_at;
};

/// What a run tells those who watch. Called by the trainer, which is an actor like others: none may wait.
struct training_watcher {
  /// Whether the end of this step can be told, and the model with it; if not, whoever makes room sends `resume`.
  std::function<bool(uint64_t step, bool with_model)> has_room = [](auto, auto) { return true; };
  std::function<void(const step_report&)> step_done = [](auto&) {};
  /// Something went wrong or somebody has come, and what was done about it, in a sentence.
  std::function<void(const std::string&)> note = [](auto&) {};
  /// A step that was profiled: its events, from time 0 on, and how long it took in all.
  std::function<void(const std::vector<event>&, double seconds)> profiled = [](auto&, double) {};
  /// Every `image_every` steps, beside the next one, and where it ends.
  std::function<void(const model_snapshot&)> image = [](auto&) {};
  /// Once: the model behind the last step, or why there is none.
  std::function<void(const caf::expected<model_snapshot>&)> ended = [](auto&) {};
};

struct trainer_settings {
  std::shared_ptr<const training_job> job;
  coordinator_actor coordinator;
  std::vector<device_id> devices; ///< In rank order.
  uint64_t steps = 1;             ///< Until so many have been done.
  bool deterministic = false;     ///< Sums are added in rank order.
  bool mirror = false;            ///< The host keeps the model as of each step, where some of it has one rank alone.
  /// Bytes that this process can still get: without room for the mirror it is left out, and a note says so.
  std::function<uint64_t()> free_memory = [] { return UINT64_MAX; };
  range profile_steps;        ///< Of which every operation's time is wanted.
  uint64_t profile_every = 1; ///< Of these, the first and each so many-th behind it.
  uint64_t image_every = 0;   ///< 0: never, but at the end.
  model_snapshot from;        ///< What it begins with; empty: first weights.
  uint64_t memory_bytes = 0;  ///< Of each device; 0: all.
  caf::timespan operation_limit = std::chrono::seconds{30};
  caf::timespan patience = std::chrono::seconds{60}; ///< For any news of a step.
  caf::timespan replacement_limit = std::chrono::seconds{
    60};                      ///< For devices in place of lost ones; `patience` if less.
  uint32_t attempts_max = 30; ///< Of one step.
  bool detached = true;       ///< Ranks have threads of their own; false under a test's scheduler.
  /// On free devices, too, in place of those that were lost. false: each device's process starts its own, which then
  /// says that it is ready.
  bool starts_ranks = true;
  std::vector<std::string> told; ///< What ranks of other processes must have alike, a phrase each.
  std::function<proto::TrainingStep(uint64_t step)> record; ///< For the journal: which samples a step is of.
  training_watcher watcher;
};

} // namespace ringmaster::training
