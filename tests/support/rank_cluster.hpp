#pragma once

#include "client/rank_communicator.hpp"
#include "tests/support/simulated_client.hpp"

#include <numeric>

namespace ringmaster::test {

/// A simulated cluster with a communicator whose ranks call for themselves. Each rank has floats at `address`.
struct rank_cluster {
  explicit rank_cluster(const simulation_options& opts, uint32_t ranks)
    : cluster{opts}, comm{cluster.init(ranks)}, handles{handles_of(comm)} {}

  std::vector<rank_communicator> handles_of(const gpu_sim::CommInitResponse& made) {
    REQUIRE(made.error() == "");
    gpu_sim::GetCommStatusResponse members;
    members.set_epoch(1);
    *members.mutable_devices() = made.devices();
    std::vector<rank_communicator> result;
    for (int rank = 0; rank < made.devices_size(); ++rank)
      result.emplace_back(cluster.sys, cluster.host, id_of(made), members, static_cast<uint32_t>(rank));
    return result;
  }

  uint64_t device(uint32_t rank) const { return comm.devices(static_cast<int>(rank)).deviceid().value(); }
  /// The `index`-th float of the rank's device.
  uint64_t address(uint32_t rank, uint64_t index = 0) const {
    return comm.devices(static_cast<int>(rank)).minmemaddr().value() + index * sizeof(float);
  }
  rank_buffers buffers(uint32_t rank, uint64_t input, uint64_t output) const {
    return {address(rank, input), address(rank, output)};
  }
  void fill(uint32_t rank, uint64_t index, const std::vector<float>& values) {
    cluster.copy_in(device(rank), address(rank, index), byte_block::of(values));
  }
  std::vector<float> read(uint32_t rank, uint64_t index, uint64_t count) {
    return elements_of<float>(cluster.copy_out(device(rank), address(rank, index), count * sizeof(float)));
  }

  /// Lets that many messages be handled, as long as there are any: no time passes.
  void run_messages(uint64_t messages_max = UINT64_MAX) {
    for (uint64_t i = 0; i < messages_max && !cluster.scheduler.jobs.empty(); ++i)
      cluster.step();
  }
  /// Runs until they have ended; returns their errors.
  std::vector<std::string> ended(const std::vector<work>& calls) {
    cluster.run_until([&] { return std::all_of(calls.begin(), calls.end(), [](auto& x) { return x.test(); }); });
    std::vector<std::string> errors;
    for (auto& x : calls)
      errors.push_back(x.error() ? render(x.error()) : "");
    return errors;
  }
  bool all_well(const std::vector<work>& calls) {
    auto errors = ended(calls);
    for (auto& x : errors)
      CHECK(x == "");
    return std::all_of(errors.begin(), errors.end(), [](auto& x) { return x.empty(); });
  }

  simulated_cluster cluster;
  gpu_sim::CommInitResponse comm;
  std::vector<rank_communicator> handles;
};

} // namespace ringmaster::test
