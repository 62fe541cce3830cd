#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringmaster::training {

/// How a job goes on when one of its hosts has failed.
enum class recovery : uint8_t {
  restart, ///< All from the checkpoint; a spare is always there.
  wait,    ///< The same, but without a spare the job waits until a host has been repaired.
  smaller, ///< The same, but without a spare it goes on with fewer copies of the model until a host is back.
  shrink,  ///< The remaining copies repeat the step; a replacement joins between two steps.
};

constexpr recovery all_recoveries[] = {recovery::restart, recovery::wait, recovery::smaller, recovery::shrink};

std::string_view name_of(recovery how);

/// A job on hosts that fail, and are repaired. Hosts fail independently and while they work only, after times of an
/// exponential distribution unless a simulation says otherwise.
struct failure_question {
  uint32_t gpus = 8;
  uint32_t gpus_per_host = 8;     ///< What fails together; where a job has fewer, it has them all.
  uint32_t copies = 1;            ///< Data-parallel: gpus / copies hold the model once.
  bool sharded = false;           ///< Copies share their optimizer's state (ZeRO): a part of it is lost with any host.
  uint32_t spares = 0;            ///< Hosts that stand by.
  double gpu_mttf_s = 1.8e8;      ///< Mean time to failure of a GPU with its share of the host.
  double checkpoint_write_s = 30; ///< That a checkpoint stops training; what is written beside it costs nothing here.
  double restart_s = 300;         ///< From a failure until training runs again, the detection included.
  double detection_s = 2.5;    ///< Of them, until the failure is known; as `suspicion` takes a silent process for lost.
  double repair_s = 86400;     ///< Until a failed host may work again, always as long.
  double join_s = 30;          ///< That training stops while a host joins: it gets a rank's state.
  double step_s = 10;          ///< Of all copies. Fewer take longer in proportion: the batch stays.
  double run_s = 30 * 86400.0; ///< For what is said of a whole run.
  std::optional<double> interval_s = {}; ///< Training between two checkpoints; none: the best.
};

/// Errors: invalid_argument, with what the question must have.
caf::error check(const failure_question& asked);

uint32_t hosts_of(const failure_question& asked);
/// Mean times until one host fails, and until one of all does.
double host_mttf_s(const failure_question& asked);
double job_mttf_s(const failure_question& asked);

/// How many copies train while `down` hosts are down; parts of broken copies make up whole ones.
uint32_t copies_with(const failure_question& asked, recovery how, uint32_t down);
/// The hosts that this number of copies needs.
uint32_t hosts_in_use(const failure_question& asked, uint32_t copies);
/// Whether all state survives somewhere when one host fails while this number of copies trains.
bool survives(const failure_question& asked, uint32_t copies);

} // namespace ringmaster::training
