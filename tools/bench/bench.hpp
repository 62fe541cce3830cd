#pragma once

#include "client/client.hpp"
#include "messages/cluster.pb.h"
#include "runtime/samples/sample_collective.hpp"
#include "tools/bench/bench_options.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// One line of the table.
struct bench_row {
  std::string algorithm;
  uint64_t bytes = 0; ///< What a rank contributes in all.
  uint64_t count = 0; ///< As the kind counts.
  double time_us = 0; ///< Median of the samples, an operation.
  double p50_us = 0;
  double p99_us = 0;
  double algbw = 0; ///< GB/s
  double busbw = 0;
  uint64_t wrong = 0;          ///< Elements.
  uint32_t operations = 0;     ///< In a sample.
  double limit_us = 0;         ///< What memory allows; 0: not measured.
  double control_messages = 0; ///< An operation, between its communicator and all other processes with ranks.
};

/// Measures one collective on one group of devices, which it makes and gives back, with memory on each of them.
class bench {
public:
  bench(client& user, const bench_options& opts) : user_(user), options_(opts) {}

  /// Makes the communicator, of these devices if there are any, and takes memory for the largest size. Errors: those of
  /// CommInit and of the memory; nothing is left behind then.
  caf::error open(const std::vector<device_id>& on = {});
  /// Errors: the first, of what could not be given back.
  caf::error close();
  /// Its devices in rank order, once it is open.
  const gpu_sim::CommInitResponse& ranks() const noexcept { return comm_; }
  /// Fills the inputs, checks the first operation's result, then measures; out of place checks the last one's, too.
  /// `bytes` are whole elements, and rounded down to blocks of the same size where each rank has one.
  caf::expected<bench_row> measure(const std::string& algorithm, uint64_t bytes);

private:
  uint64_t address(uint32_t rank) const { return addresses_[rank]; }
  device_id device(uint32_t rank) const { return id_of(comm_.devices(static_cast<int>(rank))); }
  proto::CollectiveRequest request_for(const std::string& algorithm, uint64_t count) const;
  plan_request world(uint64_t count) const;
  uint64_t output_offset(uint64_t count) const;
  uint64_t buffer_bytes() const;
  caf::error fill(uint64_t count, const sample_collective& data);
  caf::expected<uint64_t> check(uint64_t count, sample_collective& data);
  caf::expected<double> sample(const proto::CollectiveRequest& request, uint32_t operations);
  caf::error ended();
  /// What became of a rank, where one is lost, in the place of what a copy to or from it has met.
  caf::error with_ranks(const caf::error& problem);

  client& user_;
  const bench_options& options_;
  gpu_sim::CommInitResponse comm_;
  std::vector<uint64_t> addresses_; ///< By rank: of the memory that is taken.
  uint64_t rows_ = 0;               ///< Measured; each has data of its own, so old results are wrong.
  uint64_t control_messages_ = 0;   ///< Of the communicator, when it was asked last.
};

/// The options on a cluster of other processes: the number of free devices that --devices gives, else all of them; and
/// sizes up to what their memory takes, unless --max-bytes gives one. At least the number that `told` wants must be
/// free. Errors: invalid_argument, out_of_memory, with the numbers and what to do.
caf::expected<bench_options> fit_to_cluster(bench_arguments& told, const proto::ClusterInfo& cluster);

/// The same of sizes alone, where each device has so much memory. Errors: out_of_memory.
caf::error fit_sizes(bench_options& x, uint64_t memory_bytes);

} // namespace ringmaster
