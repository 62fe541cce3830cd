#include "tests/support/nodes/calling_ranks.hpp"

#include "tests/support/actor_state.hpp"

#include <algorithm>

namespace ringmaster::test {

calling_ranks::calling_ranks(simulated_nodes& cluster, const gpu_sim::CommInitResponse& comm) : cluster_(cluster) {
  gpu_sim::GetCommStatusResponse members;
  members.set_epoch(1);
  *members.mutable_devices() = comm.devices();
  for (int rank = 0; rank < comm.devices_size(); ++rank) {
    auto index = cluster.host_index_of(comm.devices(rank).deviceid().value());
    REQUIRE(index);
    auto& its = cluster.process(*index);
    processes_.push_back(&its);
    auto coordinator = state_of<node_state>(cluster.node_of(*index)).options.coordinator;
    handles_.emplace_back(its.sys, coordinator, id_of(comm), members, static_cast<uint32_t>(rank));
  }
}

void calling_ranks::call_later(const std::deque<collective_trial>& trials, const std::vector<caf::timespan>& pauses,
                               caf::timespan apart, bool in_group) {
  for (uint32_t rank = 0; rank < handles_.size(); ++rank) {
    caf::timespan when{0};
    std::vector<std::pair<size_t, proto::RankCall::Part>> parts;
    auto call = [&] {
      ++to_come_;
      cluster_.later(when, [=, this] { make(rank, parts, in_group); });
      parts.clear();
    };
    for (size_t i = 0; i < trials.size(); ++i) {
      when += pauses[i] + caf::timespan{static_cast<int64_t>(cluster_.random() % static_cast<uint64_t>(apart.count()))};
      if (auto part = trials[i].part_of(rank))
        parts.emplace_back(i, std::move(*part));
      if (!in_group && !parts.empty())
        call();
    }
    if (!parts.empty())
      call();
  }
}

void calling_ranks::make(uint32_t rank, const std::vector<std::pair<size_t, proto::RankCall::Part>>& parts,
                         bool in_group) {
  --to_come_;
  auto& handle = handles_[rank];
  made_call made{rank, {}, {}};
  if (in_group)
    handle.group_start();
  for (auto& [trial, part] : parts) {
    made.trials.push_back(trial);
    made.calls = handle.call(part, {part.collective().algorithm(), part.collective().chunk_count()});
  }
  if (in_group)
    made.calls = handle.group_end();
  calls_.push_back(std::move(made));
}

bool calling_ranks::answered(bool now) const {
  using condition = simulated_process::condition;
  return to_come_ == 0 && std::all_of(calls_.begin(), calls_.end(), [&](auto& x) {
           auto state = process_of(x.rank).state;
           return state == condition::ended || (now && state == condition::paused) || x.calls.test();
         });
}

std::string calling_ranks::failure() const {
  for (auto& x : calls_)
    if (auto problem = x.calls.error(); problem && process_of(x.rank).state != simulated_process::condition::ended)
      return render(problem).empty() ? "a call failed without a reason" : render(problem);
  return {};
}

bool calling_ranks::is_well(size_t trial) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](auto& x) {
    return std::count(x.trials.begin(), x.trials.end(), trial) != 0 && x.calls.test() && !x.calls.error();
  });
}

} // namespace ringmaster::test
