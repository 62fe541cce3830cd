#pragma once

#include "gateway/http/state/cluster_source.hpp"
#include "messages/errc.hpp"
#include "runtime/journal/journal_store.hpp"
#include "runtime/journal/queries/journal_page.hpp"
#include "tests/support/records.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <mutex>

namespace ringmaster::test {

/// Three nodes on two hosts with four devices each. Communicator 7 has the ranks 0 to 7 on the devices 1 to 8, and rank
/// 2 delays a ring all-reduce; communicator 8 has a hostile name, and waits for a spare.
inline proto::ClusterStatus example_status() {
  using proto::CommunicatorStatus;
  proto::ClusterStatus result;
  result.set_time_ns(new_year_ns);
  auto& cluster = *result.mutable_cluster();
  cluster.set_route("auto");
  for (uint64_t id = 1; id <= 3; ++id) {
    auto& node = *cluster.add_nodes();
    node.set_node_id(id);
    node.set_name("node-" + std::to_string(id));
    node.set_hostname(id < 3 ? "hosta" : "hostb");
    node.set_host("10.0.0.1");
    node.set_port(static_cast<uint32_t>(7077 + id));
    node.set_pid(810 + id);
    node.set_devices_announced(4);
    node.set_joined_ns(new_year_ns - 60'000'000'000);
    for (uint64_t i = 1; i <= 4; ++i) {
      auto& device = *cluster.add_devices();
      const auto number = (id - 1) * 4 + i;
      device.set_node_id(id);
      device.mutable_metadata()->mutable_deviceid()->set_value(number);
      device.mutable_metadata()->mutable_minmemaddr()->set_value(number << 40);
      device.mutable_metadata()->mutable_maxmemaddr()->set_value((number << 40) + (64 << 20));
      if (number <= 11)
        device.add_comm_ids(number <= 8 ? 7 : 8);
    }
  }
  cluster.mutable_nodes(1)->set_draining(true);
  cluster.mutable_nodes(2)->set_silent_ns(1'800'000'000);
  auto& apart = *cluster.mutable_nodes(1)->add_apart();
  apart.set_peer("node-3");
  apart.set_why("connection refused");
  auto& gone = *cluster.add_gone();
  gone.set_what(proto::ClusterInfo::Gone::DEVICE);
  gone.set_id(0xd);
  gone.set_name("node-3");
  gone.set_cause("killed");
  gone.set_time_ns(new_year_ns - 1'800'000'000);
  gone.add_comm_ids(8);

  auto& ring = *result.add_communicators();
  ring.set_comm_id(7);
  ring.set_name("data parallel");
  ring.set_epoch(2);
  ring.set_status(gpu_sim::IN_PROGRESS);
  ring.set_operations_in_flight(1);
  ring.set_operations_ended(11);
  ring.set_still_ns(210'500'000);
  for (uint32_t rank = 0; rank < 8; ++rank) {
    auto& x = *ring.add_ranks();
    x.set_device_id(rank + 1);
    x.set_answers(10);
    x.set_latest_age_ns(40'000'000);
    auto& latest = *x.mutable_latest();
    latest.set_sequence(12);
    latest.set_round(rank == 2 ? 3 : 4);
    latest.set_rounds(14);
    latest.set_queued(2);
    latest.set_busy(rank == 2);
    x.set_doing(rank == 2 ? "reducing a block at round 3 of 14" : "waiting for a block at round 4 of 14");
    if (rank == 2)
      x.set_late(2);
    else
      x.add_waits_for((rank + 7) % 8);
  }
  auto& verdict = *ring.add_verdicts();
  verdict.set_number(1);
  verdict.set_epoch(1);
  verdict.set_kind(proto::Verdict::CRASHED);
  verdict.set_evidence("killed");
  verdict.set_sequence(11);
  verdict.set_operation("all_reduce");
  verdict.set_round(3);
  verdict.set_rounds(16);
  verdict.set_time_ns(new_year_ns - 1'800'000'000);
  verdict.mutable_outcome()->set_epoch(2);
  verdict.mutable_outcome()->set_ranks(8);
  verdict.mutable_outcome()->add_rerun(11);
  auto& culprit = *verdict.add_culprits();
  culprit.set_rank(8);
  culprit.set_device_id(0xd);
  culprit.set_node("node-3");
  culprit.set_host("hostb");
  culprit.set_pid(813);
  auto& op = *ring.add_operations();
  op.set_sequence(12);
  op.mutable_collective()->set_algorithm("ring");
  op.mutable_collective()->set_datatype(proto::FLOAT32);
  op.mutable_collective()->set_count(1 << 20);
  op.set_bytes(4 << 20);
  op.set_phase(CommunicatorStatus::Operation::RUNNING);
  op.set_age_ns(31'500'000);
  op.set_attempts(1);
  op.set_world_size(8);
  for (const auto* name : {"memory", "link"}) {
    auto& route = *ring.add_routes();
    route.set_name(name);
    route.set_bytes(4 << 20);
    route.set_bytes_per_s(524288);
  }
  auto& hostile = *result.add_communicators();
  hostile.set_comm_id(8);
  hostile.set_name("<img src=x onerror=alert(1)>");
  hostile.set_policy(proto::REPLACE);
  hostile.set_state(CommunicatorStatus::REPLACING);
  hostile.set_epoch(1);
  hostile.set_open_calls(2);
  for (uint64_t device = 9; device <= 11; ++device)
    hostile.add_ranks()->set_device_id(device);
  auto& call = *hostile.add_waiting_calls();
  call.set_waits_for("rank 1's call");
  call.set_age_ns(900'000'000);
  return result;
}

inline proto::Record training_step(uint64_t run, uint64_t step, double loss, uint64_t ms) {
  auto record = record_at(ms);
  auto& x = *record.mutable_training_step();
  x.set_run(run);
  x.set_step(step);
  x.set_strategy("ddp");
  x.set_samples(64);
  x.set_loss(loss);
  x.set_attempts(1);
  x.set_seconds(0.125);
  for (uint64_t device = 1; device <= 4; ++device)
    x.add_device_ids(device);
  return record;
}

/// A cluster that answers from memory and notes what it is asked to do. Thread-safe.
class fake_cluster final : public gateway::cluster_source {
public:
  /// What tests look at and change, while they hold the lock. Shared, since a server owns its source.
  struct contents {
    std::mutex mutex;
    proto::ClusterStatus status = example_status();
    std::unique_ptr<journal_store> journal = make_memory_journal({});
    caf::error failure; ///< Of every request.
    std::vector<std::pair<device_id, proto::FaultRequest>> faults;
    std::vector<std::string> drained;
    uint64_t looks = 0; ///< At the status, each of which a look at the journal follows.

    void append(proto::Record record) {
      std::scoped_lock lock{mutex};
      REQUIRE(!journal->append({&record, 1}));
    }
  };

  explicit fake_cluster(std::shared_ptr<contents> all) : all_(std::move(all)) {}

  caf::expected<proto::ClusterStatus> status() override {
    std::scoped_lock lock{all_->mutex};
    ++all_->looks;
    if (all_->failure)
      return all_->failure;
    return all_->status;
  }

  caf::expected<proto::JournalTailResponse> journal(const proto::JournalTailRequest& x) override {
    std::scoped_lock lock{all_->mutex};
    if (all_->failure)
      return all_->failure;
    return journal_page(*all_->journal, x);
  }

  caf::error inject(device_id device, const proto::FaultRequest& fault) override {
    std::scoped_lock lock{all_->mutex};
    if (device.value > 12)
      return make_error(errc::unknown_device, "there is no such device");
    all_->faults.emplace_back(device, fault);
    return caf::none;
  }

  caf::expected<std::vector<std::string>> drain(const std::string& node, caf::timespan) override {
    std::scoped_lock lock{all_->mutex};
    all_->drained.push_back(node);
    return std::vector<std::string>{"communicator 7 goes on with 4 ranks"};
  }

private:
  std::shared_ptr<contents> all_;
};

} // namespace ringmaster::test
