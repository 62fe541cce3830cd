#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "client/rank_communicator.hpp"
#include "messages/errc.hpp"
#include <ringmaster/cluster.hpp>
#include <ringmaster/communicator.hpp>
#include <ringmaster/process_group.hpp>

#include <caf/actor_system.hpp>

#include <memory>
#include <mutex>
#include <optional>

// What the public handles (include/ringmaster) hold, and how their results are made of the library's own.

namespace ringmaster::api {

/// The error of the public interface with the code and message of this one.
error public_error(const caf::error& problem);

/// Success, or the error.
expected<void> public_result(const caf::error& problem);

/// The value, or the error.
template <class T>
expected<T> public_result(caf::expected<T>&& x) {
  if (!x)
    return public_error(x.error());
  return std::move(*x);
}

communicator_status public_status(const gpu_sim::GetCommStatusResponse& x);

device_info info_of(const gpu_sim::DeviceMetadata& x);
std::vector<device_info> infos_of(const google::protobuf::RepeatedPtrField<gpu_sim::DeviceMetadata>& x);

/// The actor system of a cluster. Its members stop in reverse order.
struct cluster::state {
  std::unique_ptr<configuration> config;
  ringmaster::options options; ///< As opened.
  std::unique_ptr<caf::actor_system> system;
  std::mutex guard;
  std::unique_ptr<ringmaster::cluster> home; ///< Null until the first use, or if a process group opened the cluster.
  coordinator_actor found;                   ///< Of the cluster that is open; null: none is.

  /// The coordinator of the cluster, which is opened for the first caller. Thread-safe.
  caf::expected<coordinator_actor> coordinator();
};

/// A client's connection, which its handles share.
struct client_state {
  client_state(std::shared_ptr<cluster::state> of, const coordinator_actor& coordinator, std::chrono::nanoseconds limit)
    : home(std::move(of)), calls(*home->system, coordinator, limit) {}

  std::shared_ptr<cluster::state> home;
  ringmaster::client calls;
};

/// What a rank's handle calls: one of its own, as of a split, or one of a process group's.
struct rank_communicator::state {
  std::shared_ptr<cluster::state> home;
  coordinator_actor coordinator;
  std::optional<ringmaster::rank_communicator> own;
  ringmaster::rank_communicator* calls = nullptr;
  std::shared_ptr<client_state> memory; ///< Null until the first use.

  /// The client that allocates the rank's memory.
  const std::shared_ptr<client_state>& host();
};

/// A cluster with a configuration that has been read; it is opened at its first use.
cluster make_cluster(std::unique_ptr<configuration> config, uint32_t devices_min);

} // namespace ringmaster::api
