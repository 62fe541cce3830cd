#include "tests/support/trials/collective_trial.hpp"

#include "actors/devices/device.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace ringmaster::test {

collective_trial::collective_trial(simulated_host& host, const collective_options& opts)
  : collective_trial(host, opts, host.init(opts.ranks), 0) {}

collective_trial::collective_trial(simulated_host& host, const collective_options& opts,
                                   const gpu_sim::CommInitResponse& on, uint64_t offset)
  : cluster(host), options(opts), comm(on), offset_(offset), expected_(opts, offset) {
  REQUIRE(comm.error() == "");
  for (uint32_t rank = 0; rank < opts.ranks; ++rank)
    cluster.copy_in(device(rank), base(device(rank)), byte_block::of(std::vector{expected_.before(rank)}));
}

uint64_t collective_trial::base(uint64_t device) const {
  return min_address_of(device_id{device}) + offset_;
}

std::string collective_trial::launch() {
  proto::CollectiveRequest x;
  x.set_comm_id(comm.commid());
  *x.mutable_collective() = collective_of(options);
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    x.add_inputs(input_address(rank));
    if (!options.in_place)
      x.add_outputs(output_address(rank));
  }
  auto answer = cluster.ask_coordinator<proto::CollectiveResponse>(std::move(x));
  sequence_ = answer.sequence();
  return answer.error();
}

std::optional<proto::RankCall::Part> collective_trial::part_of(uint32_t rank) const {
  proto::RankCall::Part result;
  auto& what = *result.mutable_collective();
  what = collective_of(options);
  result.set_input(input_address(rank));
  result.set_in_place(options.in_place);
  result.set_output(options.in_place ? 0 : output_address(rank));
  if (options.kind == proto::SEND_RECV) {
    if (rank != options.root && rank != options.peer)
      return std::nullopt;
    result.set_receives(rank == options.peer);
    result.set_in_place(false);
    result.set_input(rank == options.root ? input_address(rank) : 0);
    result.set_output(rank == options.root ? 0 : options.in_place ? input_address(rank) : output_address(rank));
    what.set_peer(rank == options.root ? options.peer : options.root);
    what.set_root(0);
  }
  if (options.kind == proto::ALL_TO_ALL && !options.counts.empty()) {
    what.clear_counts();
    for (uint32_t other = 0; other < options.ranks; ++other) {
      what.add_counts(options.counts[rank * options.ranks + other]);
      result.add_receive_counts(options.counts[other * options.ranks + rank]);
    }
  }
  return result;
}

void collective_trial::find_sequence(const std::vector<proto::Record>& history) {
  auto is_ours = [this](uint64_t address) {
    for (uint32_t rank = 0; rank < options.ranks; ++rank)
      if (address == input_address(rank) || address == output_address(rank))
        return true;
    return false;
  };
  for (auto& x : history) {
    auto& request = x.operation_enqueued().request();
    if (x.has_operation_enqueued() && request.comm_id() == comm.commid()
        && (std::any_of(request.inputs().begin(), request.inputs().end(), is_ours)
            || std::any_of(request.outputs().begin(), request.outputs().end(), is_ours)))
      sequence_ = x.operation_enqueued().sequence();
  }
}

/// The ranks whose epoch ended the operation.
collective_trial::group collective_trial::deciding_group(bool& failed) {
  std::map<uint64_t, group> epochs;
  uint64_t decided = 0;
  bool replaces = false;
  auto members_of = [&](const auto& ids) {
    group members;
    for (uint32_t place = 0; place < static_cast<uint32_t>(ids.size()); ++place) {
      uint32_t rank = place;
      for (uint32_t first = 0; first < options.ranks && !replaces; ++first)
        if (device(first) == ids[static_cast<int>(place)])
          rank = first;
      members.push_back({rank, ids[static_cast<int>(place)], ids[static_cast<int>(place)] != device(rank)});
    }
    return members;
  };
  for (auto& x : cluster.history())
    if (x.has_communicator_created() && x.communicator_created().comm_id() == comm.commid()) {
      replaces = x.communicator_created().policy() == proto::REPLACE;
      epochs[1] = members_of(x.communicator_created().device_ids());
    } else if (x.has_epoch_opened() && x.epoch_opened().comm_id() == comm.commid()) {
      epochs[x.epoch_opened().epoch()] = members_of(x.epoch_opened().device_ids());
    } else if (x.has_operation_ended() && x.operation_ended().comm_id() == comm.commid()
               && x.operation_ended().sequence() == sequence_) {
      decided = x.operation_ended().epoch();
      failed = x.operation_ended().status() == gpu_sim::FAILED;
    }
  // What has failed may have done so in an epoch that was never opened: the group before had its inputs.
  auto its = failed ? epochs.upper_bound(decided) : epochs.find(decided);
  if (failed && its != epochs.begin())
    --its;
  return its == epochs.end() ? group{} : its->second;
}

std::string collective_trial::judge(const std::function<bool(uint64_t)>& gone) {
  bool failed = false;
  auto members = deciding_group(failed);
  if (members.empty())
    return "the journal does not say which group ended the operation";
  for (uint32_t place = 0; place < members.size(); ++place)
    if (!gone(members[place].device))
      if (auto wrong = judge_rank(members, place, failed); !wrong.empty() && !gone(members[place].device))
        return wrong;
  return {};
}

std::string collective_trial::judge_rank(const group& members, uint32_t place, bool failed) {
  auto& its = members[place];
  auto read = cluster.read(its.device, base(its.device), bytes());
  if (!read)
    return fmt::format("rank {} (device 0x{:x}) cannot be read: {}", its.rank, its.device, render(read.error()));
  return expected_.wrong_in(members, place, failed, elements_of<int64_t>(*read));
}

} // namespace ringmaster::test
