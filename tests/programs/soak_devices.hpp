#pragma once

#include "tests/programs/soak_cluster.hpp"
#include "tests/programs/soak_connection.hpp"

#include <random>

namespace ringmaster::soak {

/// What goes wrong with single devices, while the processes that host them live on: they are killed, hang and are slow,
/// at once or at a step of what they run next. A client of its own asks for it.
class soak_devices {
public:
  soak_devices(soak_connection& connection, soak_cluster& cluster, uint64_t seed)
    : connection_(connection), cluster_(cluster), random_(seed) {}

  /// Harms one device, drawn from those that are there.
  void harm_one();
  /// Until the next one.
  soak_cluster::milliseconds pause();

private:
  proto::FaultRequest draw();

  soak_connection& connection_;
  soak_cluster& cluster_;
  std::mt19937_64 random_;
};

} // namespace ringmaster::soak
