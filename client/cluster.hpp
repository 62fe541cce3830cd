#pragma once

#include "messages/interfaces.hpp"
#include "runtime/configuration/options.hpp"
#include "runtime/coordination/rendezvous_desk.hpp"
#include "runtime/journal/journal_health.hpp"
#include "runtime/memory/memory_directory.hpp"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ringmaster {

/// What a coordinator has to do with the launcher of ranks that join it.
struct served_launcher {
  std::string job; ///< launched_process::identity of its ranks; empty: those of any launcher are refused that have one.
  /// Called on one of the system's threads for each rank that leaves; may be empty.
  std::function<void(const rank_departure&)> on_departure{};
};

/// What one process hosts of a cluster, under one supervisor with rest_for_one, for each needs those before it:
///
///   supervisor +- journal       with a directory, in a thread of its own, or in memory
///              +- coordinator
///              +- node          and under it a supervisor (one_for_one) with the devices, which own their streams
///
/// Ends them all when it goes.
class cluster {
public:
  /// Starts journal and coordinator, and a node if `with_node`, and waits until its devices are there. Errors: those of
  /// the journal and of the memory directory, timed_out, gave_up.
  static caf::expected<std::unique_ptr<cluster>> start(caf::actor_system& system, const options& opts, bool with_node,
                                                       const served_launcher& launcher = {});

  /// The cluster that a program uses: the one whose coordinator `node.join` or the environment's
  /// RINGMASTER_COORDINATOR names ("host:port"), or else one of its own in this process.
  static caf::expected<std::unique_ptr<cluster>> open(caf::actor_system& system, const options& opts);

  /// The one of a coordinator that has been found.
  static std::unique_ptr<cluster> of(caf::actor_system& system, coordinator_actor coordinator);

  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  const coordinator_actor& coordinator() const noexcept { return coordinator_; }
  /// The supervisor of what is hosted here; invalid where the cluster is elsewhere.
  const caf::actor& root() const noexcept { return root_; }
  /// What is not in the journal of this cluster; null where it is elsewhere. It may be looked at when the cluster has
  /// ended.
  const std::shared_ptr<const journal_health>& records() const noexcept { return records_; }

private:
  explicit cluster(caf::actor_system& system) : system_(system) {}

  caf::error find_coordinator();
  /// Waits until so many devices have joined.
  caf::error await_devices(uint32_t count);

  caf::actor_system& system_;
  std::shared_ptr<memory_directory> memory_; ///< Of the node's devices.
  caf::actor root_;
  std::shared_ptr<const journal_health> records_;
  coordinator_actor coordinator_;
};

/// Where the coordinator of another process is that a program is to use, "host:port": what `node.join` says, or else
/// the environment's RINGMASTER_COORDINATOR. Empty: there is none.
std::string coordinator_elsewhere(const options& opts);

/// The coordinator at `where`, "host:port". Errors: invalid_argument, also for a host that is unknown; timed_out with
/// the address and what to check; wrong_version.
caf::expected<coordinator_actor> connect(caf::actor_system& system, const std::string& where, caf::timespan limit);

} // namespace ringmaster
