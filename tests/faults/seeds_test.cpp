// Whole clusters in virtual time, each in an order and with faults drawn from its seed. RINGMASTER_SEEDS says how many
// seeds are tried (2000), RINGMASTER_SEED replays one and prints its history.
#include "runtime/algorithms/registry.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "runtime/journal/record_text.hpp"
#include "tests/support/all_reduce_trial.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  auto text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What a seed plays.
struct scenario {
  simulation_options cluster;
  trial_options trial;
  uint32_t launches = 1;
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
  return x;
}

/// The journal, read as its reader would.
struct history_check {
  std::map<uint64_t, std::vector<uint64_t>> epochs; ///< Devices by epoch.
  std::map<uint64_t, proto::OperationEnded> ended;  ///< By sequence.
  std::string problem;

  history_check(const std::vector<proto::Record>& records, uint64_t comm) {
    std::set<uint64_t> enqueued, dead;
    std::map<uint64_t, uint32_t> started;
    uint64_t time = 0;
    for (auto& x : records) {
      if (x.has_communicator_created() && x.communicator_created().comm_id() == comm)
        epochs[1] = {x.communicator_created().device_ids().begin(), x.communicator_created().device_ids().end()};
      if (x.has_epoch_opened() && x.epoch_opened().comm_id() == comm) {
        auto& opened = x.epoch_opened();
        expect(opened.epoch() > epochs.rbegin()->first, "an epoch is not newer than the one before");
        epochs[opened.epoch()] = {opened.device_ids().begin(), opened.device_ids().end()};
      }
      if (x.has_operation_enqueued())
        expect(enqueued.insert(x.operation_enqueued().sequence()).second, "an operation was enqueued twice");
      if (x.has_operation_started())
        ++started[x.operation_started().sequence()];
      if (x.has_operation_ended())
        expect(ended.emplace(x.operation_ended().sequence(), x.operation_ended()).second, "an operation ended twice");
      if (x.has_device_died())
        expect(dead.insert(x.device_died().device_id()).second, "a device died twice");
      time = std::max(time, x.time_ns());
    }
    expect(ended.size() == enqueued.size(), "an operation was enqueued and has not ended");
    for (auto& [sequence, x] : ended)
      expect(x.attempts() == started[sequence], "attempts and starts differ");
  }

  void expect(bool right, const char* otherwise) {
    if (!right && problem.empty())
      problem = otherwise;
  }
};

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

struct outcome {
  std::string problem;
  uint64_t digest = 0;
  bool failed = false;
  bool reran = false;
};

outcome play(uint64_t seed, bool print) {
  auto x = scenario_of(seed);
  simulated_cluster cluster{x.cluster};
  all_reduce_trial trial{cluster, x.trial};
  for (auto& [rank, fault] : x.faults) {
    gpu_sim::DeviceId id;
    id.set_value(trial.device(rank));
    caf::anon_send(cluster.host, std::move(id), fault); // races with the call below
  }
  outcome result;
  for (uint32_t i = 0; i < x.launches && result.problem.empty(); ++i)
    result.problem = trial.launch();
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
  if (auto seed = number_from("RINGMASTER_SEED", 0); seed != 0) {
    auto result = play(seed, true);
    CHECK(result.problem == "");
    return;
  }
  auto seeds = number_from("RINGMASTER_SEEDS", 2000);
  uint64_t reran = 0, failed = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    auto result = play(seed, false);
    if (!result.problem.empty())
      FAIL_CHECK(fmt::format("seed {}: {}\n  replay it: ./run test --seed {}", seed, result.problem, seed));
    reran += result.reran;
    failed += result.failed;
    if (seed % 10 == 0 && play(seed, false).digest != result.digest)
      FAIL_CHECK(fmt::format("seed {} has another history the second time\n  replay it: ./run test --seed {}", seed,
                             seed));
  }
  MESSAGE(fmt::format("{} seeds, {} with a new epoch, {} that ended in a stated failure", seeds, reran, failed));
  CHECK(reran > seeds / 10); // or the faults do not strike
}
