#pragma once

#include "tests/support/rank_cluster.hpp"

#include <algorithm>
#include <functional>

namespace ringmaster::test {

using floats = std::vector<float>;

/// A cluster of four ranks, each with 64 floats, and 64 after them for results; calls in groups of the host.
struct grouped_calls : rank_cluster {
  static simulation_options options(uint64_t seed, bool offer_memory, bool share_memory) {
    simulation_options result;
    result.seed = seed;
    result.devices = 4;
    result.offer_memory = offer_memory;
    result.share_memory = share_memory;
    result.journaled = true;
    return result;
  }

  explicit grouped_calls(uint64_t seed, bool offer_memory = true, bool share_memory = true)
    : rank_cluster{options(seed, offer_memory, share_memory), 4} {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      floats values(64);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((1 << rank) * (i + 1));
      fill(rank, 0, values);
    }
  }

  /// `calls` sums of two floats each, from 2i to 64 + 2i.
  void group(uint64_t calls, const std::function<void(uint64_t, proto::CollectiveRequest&)>& change = {},
             const std::function<void()>& before_end = {}) {
    gpu_sim::GroupStartRequest start;
    start.set_commid(comm.commid());
    REQUIRE(cluster.ask_coordinator<gpu_sim::GroupStartResponse>(start).error() == "");
    for (uint64_t i = 0; i < calls; ++i) {
      proto::CollectiveRequest x;
      x.set_comm_id(comm.commid());
      x.mutable_collective()->set_algorithm("tree");
      x.mutable_collective()->set_datatype(proto::FLOAT32);
      x.mutable_collective()->set_count(2);
      for (uint32_t rank = 0; rank < 4; ++rank) {
        x.add_inputs(address(rank, 2 * i));
        x.add_outputs(address(rank, 64 + 2 * i));
      }
      if (change)
        change(i, x);
      REQUIRE(cluster.ask_coordinator<proto::CollectiveResponse>(x).error() == "");
    }
    if (before_end)
      before_end();
    gpu_sim::GroupEndRequest end;
    end.set_commid(comm.commid());
    REQUIRE(cluster.ask_coordinator<gpu_sim::GroupEndResponse>(end).error() == "");
  }

  std::vector<floats> memories(const std::vector<uint32_t>& ranks = {0, 1, 2, 3}) {
    std::vector<floats> result;
    for (auto rank : ranks)
      result.push_back(read(rank, 0, 128));
    return result;
  }

  /// How many walks a rank has made.
  size_t walks(uint32_t rank) {
    auto records = cluster.history();
    return static_cast<size_t>(std::count_if(records.begin(), records.end(), [&](auto& x) {
      return x.has_rank_ended() && x.rank_ended().phase() == proto::RankReport::COMMITTED
             && x.rank_ended().device_id() == device(rank);
    }));
  }

  /// Sums of the first `calls` calls over the ranks in `mask`.
  floats sums(uint64_t calls, int mask = 15) const {
    floats result;
    for (uint64_t i = 0; i < 2 * calls; ++i)
      result.push_back(static_cast<float>(static_cast<uint64_t>(mask) * (i + 1)));
    return result;
  }
};

} // namespace ringmaster::test
