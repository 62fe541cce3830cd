#pragma once

#include "actors/training/interfaces.hpp"
#include "training/computed/training_job.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ringmaster::training {

/// The whole model as it was before a step: parts that together have all of it.
struct model_snapshot {
  uint64_t step = 0;
  std::map<kept_part, byte_block> parts;
};

/// A step that was committed.
struct step_report {
  uint64_t step = 0;
  double loss = 0;     ///< Mean over its samples.
  double accuracy = 0; ///< The fraction of them whose label had the largest output.
  uint32_t ranks = 0;
  uint32_t attempts = 1;
  uint64_t bytes_peak = 0;   ///< The most that any rank has used at a time, since it started.
  uint64_t bytes_needed = 0; ///< Of a device, for that: free memory is fragmented.
  double seconds = 0;        ///< Of the last attempt.
  std::chrono::steady_clock::time_point ended_at;
};

/// What a run reports. The trainer calls these functions, and is an actor like others: they must not block.
struct training_watcher {
  /// Whether the report of this step can be taken, and the model with it. If not, the watcher sends `resume` when it
  /// can.
  std::function<bool(uint64_t step, bool with_model)> has_room = [](auto, auto) { return true; };
  std::function<void(const step_report&)> step_done = [](auto&) {};
  /// Something went wrong, or a rank has joined or left, and what was done about it, in a sentence.
  std::function<void(const std::string&)> note = [](auto&) {};
  /// A step that was profiled: its events, from time 0 on, and its duration.
  std::function<void(const std::vector<event>&, double seconds)> profiled = [](auto&, double) {};
  /// Every `image_every` steps, while the next one runs, and at the end.
  std::function<void(const model_snapshot&)> image = [](auto&) {};
  /// Once: the model after the last step, or why there is none.
  std::function<void(const caf::expected<model_snapshot>&)> ended = [](auto&) {};
};

struct trainer_settings {
  std::shared_ptr<const training_job> job;
  coordinator_actor coordinator;
  std::vector<device_id> devices; ///< In rank order.
  uint64_t steps = 1;             ///< The run ends after this number of steps.
  bool deterministic = false;     ///< Sums are added in rank order.
  bool mirror = false;            ///< The host keeps the model as of each step, if one rank alone has some of it.
  /// Bytes that this process can still get. Without room for the mirror there is none, and a note says so.
  std::function<uint64_t()> free_memory = [] { return UINT64_MAX; };
  range profile_steps;        ///< Whose operations are timed.
  uint64_t profile_every = 1; ///< Of these steps, the first and every `profile_every`-th after it.
  uint64_t image_every = 0;   ///< 0: only at the end.
  model_snapshot from;        ///< The model to start with; empty: first weights.
  uint64_t memory_bytes = 0;  ///< Of each device; 0: all.
  caf::timespan operation_limit = std::chrono::seconds{30};
  caf::timespan patience = std::chrono::seconds{60}; ///< For any news of a step.
  caf::timespan replacement_limit = std::chrono::seconds{
    60};                      ///< For devices in place of lost ones; at most `patience`.
  uint32_t attempts_max = 30; ///< Of one step.
  bool detached = true;       ///< Ranks have threads of their own; false under a test's scheduler.
  /// The trainer starts a rank on each device, and on free devices in place of lost ones. false: each device's process
  /// starts its own rank, which then reports that it is ready.
  bool starts_ranks = true;
  std::vector<std::string> shared_settings;                 ///< That all ranks' processes must agree on, a phrase each.
  std::function<proto::TrainingStep(uint64_t step)> record; ///< For the journal: the samples of a step.
  training_watcher watcher;

  /// Whether the operations of this step are timed.
  bool profiles(uint64_t step) const {
    return step >= profile_steps.begin && step < profile_steps.end && (step - profile_steps.begin) % profile_every == 0;
  }
};

} // namespace ringmaster::training
