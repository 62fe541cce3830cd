#pragma once

#include "client/client.hpp"
#include "client/cluster.hpp"

#include <memory>
#include <optional>

namespace ringmaster::soak {

/// A client of the cluster that connects again where it has lost the coordinator, which may be stopped or out of reach
/// for longer than a connection lasts. One thread at a time.
class soak_connection {
public:
  soak_connection(caf::actor_system& system, const options& opts) : system_(system), options_(opts) {}

  /// Errors: those of cluster::open; then all is as it was.
  caf::error open() {
    auto home = cluster::open(system_, options_);
    if (!home)
      return std::move(home.error());
    client_.reset();
    home_ = std::move(*home);
    client_.emplace(system_, home_->coordinator());
    return caf::none;
  }
  /// Connects again if that is why a call failed. Returns whether it has.
  bool renew(const caf::error& why) {
    auto is_loss = [](const caf::error& x) { return code_of(x) == errc::device_lost; };
    if (!is_loss(why))
      return false;
    auto there = client_->info();
    return !there && is_loss(there.error()) && !open();
  }
  client& host() { return *client_; }

private:
  caf::actor_system& system_;
  const options& options_;
  std::unique_ptr<cluster> home_;
  std::optional<client> client_;
};

} // namespace ringmaster::soak
