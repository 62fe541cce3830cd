#pragma once

#include "messages/interfaces.hpp"
#include "runtime/configuration/options.hpp"
#include "runtime/coordination/rendezvous_desk.hpp"
#include "runtime/journal/journal_health.hpp"
#include "runtime/memory/memory_directory.hpp"
#include "runtime/metadata/metadata_store.hpp"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ringmaster {

/// What a coordinator knows of the launcher of its ranks.
struct served_launcher {
  std::string job; ///< launched_process::identity of its ranks; empty: ranks of every launcher are refused.
  /// Called on a thread of the actor system for each rank that leaves; may be empty.
  std::function<void(const rank_departure&)> on_departure{};
};

/// What one process hosts of a cluster, under one supervisor with rest_for_one, since each child needs those before it:
///
///   supervisor +- journal       with a directory, in a thread of its own, or in memory
///              +- coordinator
///              +- node          and under it a supervisor (one_for_one) with the devices, which own their streams
///
/// The destructor stops them all.
class cluster {
public:
  /// Starts journal and coordinator, and a node if `with_node`, and waits until its devices have joined. With a store
  /// it goes on with the cluster that a former process has left there. Errors: those of the journal, the store and the
  /// memory directory, timed_out, gave_up.
  static caf::expected<std::unique_ptr<cluster>> start(caf::actor_system& system, const options& opts, bool with_node,
                                                       const served_launcher& launcher = {},
                                                       std::shared_ptr<metadata_store> store = {});

  /// The cluster that a program uses: that of the coordinator which `node.join` or the environment variable
  /// RINGMASTER_COORDINATOR names ("host:port", or those of all candidates, with commas between them), else one in this
  /// process.
  static caf::expected<std::unique_ptr<cluster>> open(caf::actor_system& system, const options& opts);

  /// A cluster whose coordinator is known.
  static std::unique_ptr<cluster> of(caf::actor_system& system, coordinator_actor coordinator);

  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  const coordinator_actor& coordinator() const noexcept { return coordinator_; }
  /// The supervisor of this process; invalid where the cluster is in another process.
  const caf::actor& root() const noexcept { return root_; }
  /// Records that are missing in the journal; null where the cluster is in another process. Stays valid after the
  /// cluster has stopped.
  const std::shared_ptr<const journal_health>& records() const noexcept { return records_; }

private:
  explicit cluster(caf::actor_system& system) : system_(system) {}

  caf::error find_coordinator();
  /// Waits until this number of devices has joined.
  caf::error await_devices(uint32_t count);

  caf::actor_system& system_;
  std::shared_ptr<memory_directory> memory_; ///< Of the node's devices.
  caf::actor root_;
  std::shared_ptr<const journal_health> records_;
  coordinator_actor coordinator_;
};

/// Address of the coordinator of another process that a program must use, "host:port": `node.join`, else the
/// environment variable RINGMASTER_COORDINATOR. Empty: none.
std::string coordinator_elsewhere(const options& opts);

/// The coordinator at `where`, "host:port", or at one of several with commas between them. If it keeps a store, the
/// handle outlives its process: when that is killed and restarted the handle leads to it again, within `patience`
/// (make_coordinator_proxy). Errors: invalid_argument, also for an unknown host; timed_out, with the address and what
/// to check; wrong_version.
caf::expected<coordinator_actor> connect(caf::actor_system& system, const std::string& where, caf::timespan limit,
                                         caf::timespan patience = std::chrono::seconds{60});

} // namespace ringmaster
