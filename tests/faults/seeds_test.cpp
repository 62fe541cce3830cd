// Whole clusters in virtual time, each in an order and with faults drawn from its seed. RINGMASTER_SEEDS says how many
// seeds are tried (2000), RINGMASTER_SEED replays one and prints its history.
#include "runtime/algorithms/registry.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "runtime/journal/record_text.hpp"
#include "tests/support/histories/history_check.hpp"
#include "tests/support/histories/played_seeds.hpp"
#include "tests/support/simulated_cluster.hpp"
#include "tests/support/trials/all_reduce_trial.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// What a seed plays.
struct scenario {
  simulation_options cluster;
  trial_options trial;
  uint32_t launches = 1;
  bool in_group = false;
  std::vector<std::pair<uint32_t, proto::FaultRequest>> faults; ///< By rank.

  /// Whether a fault may strike the rank after the operation, so that it cannot be asked.
  bool may_be_gone(uint32_t rank) const {
    return std::any_of(faults.begin(), faults.end(), [=](auto& fault) { return fault.first == rank; });
  }
};

scenario scenario_of(uint64_t seed) {
  std::mt19937_64 random{seed};
  auto below = [&](uint64_t n) { return random() % n; };
  scenario x;
  x.cluster.seed = seed;
  x.cluster.journaled = true;
  x.cluster.slice_bytes = 8 * (1 + below(8));
  x.cluster.offer_memory = below(3) != 0;
  x.cluster.supervised = below(2) == 0;
  x.cluster.hurry_per_mille = below(4) == 0 ? 5 : 0;
  constexpr proto::FailurePolicy policies[] = {proto::SHRINK, proto::SHRINK, proto::REPLACE, proto::ABORT};
  x.cluster.policy = policies[below(4)];
  x.trial.ranks = static_cast<uint32_t>(1 + below(6));
  x.cluster.devices = x.trial.ranks + static_cast<uint32_t>(below(3));
  constexpr const char* names[] = {"ring", "naive", "direct", "tree", "butterfly", "halving_doubling"};
  x.trial.algorithm = names[below(std::size(names))];
  x.trial.count = below(30);
  x.trial.datatype = static_cast<proto::DataType>(below(4));
  x.trial.op = static_cast<gpu_sim::ReduceOp>(below(5));
  x.trial.in_place = below(2) == 0;
  if (!x.trial.in_place)
    x.launches = static_cast<uint32_t>(1 + below(3));
  auto rounds
    = plan(proto::ALL_REDUCE, x.trial.algorithm, {.world_size = x.trial.ranks, .count = x.trial.count})->rounds;
  for (auto n = below(4); n > 0; --n) {
    proto::FaultRequest fault;
    fault.set_kind(static_cast<proto::FaultRequest::Kind>(below(3)));
    fault.set_at_step(below(4) != 0);
    fault.set_step(static_cast<uint32_t>(below(rounds + 2)));
    fault.set_delay_ns(below(2) == 0 ? 5'000'000 : 5'000'000'000); // a little slow, or as good as dead
    x.faults.emplace_back(static_cast<uint32_t>(below(x.trial.ranks)), fault);
  }
  x.cluster.relays = static_cast<uint32_t>(below(4)); // drawn last: older seeds keep their scenarios
  if (below(6) == 0) {
    x.trial.algorithm = "hierarchical";
    x.cluster.devices_a_host = static_cast<uint32_t>(1 + below(4));
  }
  for (auto& [rank, fault] : x.faults)
    if (fault.kind() == proto::FaultRequest::HANG && below(2) == 0)
      fault.set_delay_ns(0);                    // for good
  x.in_group = x.launches > 1 && below(2) == 0; // then they are walked in a series
  return x;
}

/// What must be true at the end. Returns what is not.
std::string judge(simulated_cluster& cluster, all_reduce_trial& trial, const scenario& x,
                  const gpu_sim::GetCommStatusResponse& status, const history_check& history) {
  if (!history.problem.empty())
    return history.problem;
  std::set<uint64_t> alive;
  auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  for (auto& device : info.devices())
    alive.insert(device.metadata().deviceid().value());
  std::vector<uint32_t> standing; // ranks whose first device is still there, unhurt
  for (uint32_t rank = 0; rank < trial.options.ranks; ++rank)
    if (alive.count(trial.device(rank)) != 0)
      standing.push_back(rank);
  auto& last = history.ended.at(x.launches);
  if (status.status() == gpu_sim::FAILED && status.error().empty())
    return "FAILED without a reason";
  if (last.status() == gpu_sim::FAILED) { // else the communicator ended after it
    if (x.faults.empty() && x.cluster.hurry_per_mille == 0)
      return "failed without a fault: " + status.error();
    for (auto rank : standing)
      if (!x.may_be_gone(rank) && !trial.input_intact(rank))
        return fmt::format("the operation failed, and rank {}'s input is lost", rank);
    return {};
  }
  auto group = history.epochs.at(last.epoch());
  std::vector<uint32_t> contributors;
  for (uint32_t rank = 0; rank < trial.options.ranks; ++rank)
    if (x.cluster.policy == proto::REPLACE || std::count(group.begin(), group.end(), trial.device(rank)) != 0)
      contributors.push_back(rank);
  if (contributors.size() != group.size())
    return fmt::format("{} ranks contributed, the epoch has {}", contributors.size(), group.size());
  std::vector<uint32_t> holders;
  for (auto& device : status.devices())
    for (auto rank : contributors)
      if (trial.device(rank) == device.deviceid().value() && !x.may_be_gone(rank))
        holders.push_back(rank);
  trial.deciders = group;
  return trial.judge(contributors, holders);
}

template <class Request, class Response>
std::string ask_group(simulated_cluster& cluster, const gpu_sim::CommInitResponse& comm) {
  Request request;
  request.set_commid(comm.commid());
  return cluster.ask_coordinator<Response>(request).error();
}

played_seed play(uint64_t seed, bool print) {
  auto x = scenario_of(seed);
  simulated_cluster cluster{x.cluster};
  all_reduce_trial trial{cluster, x.trial};
  for (auto& [rank, fault] : x.faults) {
    gpu_sim::DeviceId id;
    id.set_value(trial.device(rank));
    caf::anon_send(cluster.host, std::move(id), fault); // races with the call below
  }
  played_seed result;
  if (x.in_group)
    result.problem = ask_group<gpu_sim::GroupStartRequest, gpu_sim::GroupStartResponse>(cluster, trial.comm);
  for (uint32_t i = 0; i < x.launches && result.problem.empty(); ++i)
    result.problem = trial.launch();
  if (x.in_group && result.problem.empty())
    result.problem = ask_group<gpu_sim::GroupEndRequest, gpu_sim::GroupEndResponse>(cluster, trial.comm);
  bool refused = !result.problem.empty() && !x.faults.empty(); // the fault struck before the call
  if (refused)
    return {};
  auto status = cluster.wait(trial.comm.commid());
  auto records = cluster.history();
  if (print)
    for (auto& record : records)
      MESSAGE(text_of(record, {uint64_t{0}, {}, {}}));
  if (status.status() == gpu_sim::IN_PROGRESS)
    result.problem = "no end within the limit: " + status.error();
  history_check history{records, trial.comm.commid()};
  if (result.problem.empty())
    result.problem = judge(cluster, trial, x, status, history);
  result.digest = digest_of(records);
  result.failed = status.status() == gpu_sim::FAILED;
  result.reran = history.epochs.size() > 1;
  return result;
}

} // namespace

TEST_CASE("seeds: whatever is killed, hung or slowed, in whatever order, each operation ends right or says why not") {
  if (auto reran = play_seeds(play, 10))
    CHECK(*reran > 10); // or the faults do not strike
}
