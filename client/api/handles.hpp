#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"
#include <ringmaster/cluster.hpp>
#include <ringmaster/communicator.hpp>

#include <caf/actor_system.hpp>

#include <memory>

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

device_info info_of(const gpu_sim::DeviceMetadata& x);
std::vector<device_info> infos_of(const google::protobuf::RepeatedPtrField<gpu_sim::DeviceMetadata>& x);

/// The actor system of an opened cluster. Its members stop in reverse order.
struct cluster::state {
  std::unique_ptr<configuration> config;
  ringmaster::options options; ///< As opened.
  std::unique_ptr<caf::actor_system> system;
  std::unique_ptr<ringmaster::cluster> home;
};

/// A client's connection, which its handles share.
struct client_state {
  client_state(std::shared_ptr<cluster::state> of, std::chrono::nanoseconds limit)
    : home(std::move(of)), calls(*home->system, home->home->coordinator(), limit) {}

  std::shared_ptr<cluster::state> home;
  ringmaster::client calls;
};

/// Opens a cluster with a configuration that has been read.
expected<cluster> open_cluster(std::unique_ptr<configuration> config, uint32_t devices_min);

} // namespace ringmaster::api
