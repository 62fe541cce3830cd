#include "tests/support/trials/collective_trial.hpp"

#include "actors/devices/device.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace ringmaster::test {

std::string text_of(const collective_options& x) {
  return fmt::format("{} {} over {} ranks, root {}, peer {}, count {}, counts {}{}, {} devices a host", x.algorithm,
                     name_of(x.kind), x.ranks, x.root, x.peer, x.count, fmt::join(x.counts, " "),
                     x.in_place ? ", in place" : "", x.devices_a_host);
}

proto::Collective collective_of(const collective_options& x) {
  proto::Collective result;
  result.set_kind(x.kind);
  result.set_algorithm(x.algorithm);
  result.set_datatype(proto::INT64);
  result.set_count(x.count);
  result.set_root(x.root);
  result.set_peer(x.peer);
  result.set_chunk_count(x.chunk);
  result.mutable_counts()->Add(x.counts.begin(), x.counts.end());
  return result;
}

/// A rank's region: guard, input (or the one buffer), guard, output, guard.
collective_trial::collective_trial(simulated_host& host, const collective_options& opts)
  : collective_trial(host, opts, host.init(opts.ranks), 0) {}

collective_trial::collective_trial(simulated_host& host, const collective_options& opts,
                                   const gpu_sim::CommInitResponse& on, uint64_t offset)
  : cluster(host), options(opts), comm(on), offset_(offset) {
  REQUIRE(comm.error() == "");
  group all;
  for (uint32_t rank = 0; rank < opts.ranks; ++rank)
    all.push_back({rank, device(rank)});
  world_ = world_of(all);
  for (uint32_t rank = 0; rank < opts.ranks; ++rank)
    room_ = std::max({room_, input_count(opts.kind, world_, rank), output_count(opts.kind, world_, rank)});
  for (uint32_t rank = 0; rank < opts.ranks; ++rank) {
    std::vector<int64_t> region(bytes() / 8);
    for (uint64_t i = 0; i < region.size(); ++i)
      region[i] = static_cast<int64_t>(1'000'003 * (rank + 1) + 7 * i + i * i + offset);
    before_.push_back(region);
    cluster.copy_in(device(rank), base(device(rank)), byte_block::of(std::move(region)));
  }
}

uint64_t collective_trial::base(uint64_t device) const {
  return min_address_of(device_id{device}) + offset_;
}

plan_request collective_trial::world_of(const group& members) const {
  auto place_of = [&](uint32_t rank) {
    auto its = std::find_if(members.begin(), members.end(), [=](auto& x) { return x.rank == rank; });
    return static_cast<uint32_t>(its - members.begin());
  };
  auto what = collective_of(options);
  what.set_root(place_of(options.root));
  what.set_peer(place_of(options.peer));
  auto world = request_of(what, static_cast<uint32_t>(members.size()), 0);
  world.counts.clear();
  if (options.counts.empty())
    return world;
  for (auto& x : members)
    if (options.kind != proto::ALL_TO_ALL)
      world.counts.push_back(options.counts[x.rank]);
    else
      for (auto& to : members)
        world.counts.push_back(options.counts[x.rank * options.ranks + to.rank]);
  return world;
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
      members.push_back({rank, ids[static_cast<int>(place)]});
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

int64_t collective_trial::result(const group& members, uint32_t place, uint64_t index) const {
  auto from = meaning_of(options.kind, world_of(members), place, index);
  auto input = [&](uint32_t rank, uint64_t i) {
    auto offset = options.in_place ? in_place(options.kind, world_, rank).input : 0; // where it was at the start
    return static_cast<uint64_t>(before_[rank][guard + offset + i]);
  };
  if (!from.all_ranks)
    return static_cast<int64_t>(input(members[from.rank].rank, from.index));
  uint64_t sum = 0;
  for (auto& x : members)
    sum += input(x.rank, from.index);
  return static_cast<int64_t>(sum);
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
  auto [rank, its_device] = members[place];
  auto world = world_of(members);
  auto expected = before_[rank];
  uint64_t start = options.in_place ? guard + in_place(options.kind, world, place).output : 2 * guard + room_;
  uint64_t outputs = failed ? 0 : output_count(options.kind, world, place);
  uint64_t first_start = options.in_place ? guard + in_place(options.kind, world_, rank).output : start;
  uint64_t first_outputs = output_count(options.kind, world_, rank);
  for (uint64_t i = 0; i < outputs; ++i)
    expected[start + i] = result(members, place, i);
  auto read = cluster.read(its_device, base(its_device), expected.size() * 8);
  if (!read)
    return fmt::format("rank {} (device 0x{:x}) cannot be read: {}", rank, its_device, render(read.error()));
  auto found = elements_of<int64_t>(*read);
  for (uint64_t i = 0; i < expected.size(); ++i) {
    bool output = i >= start && i < start + outputs;
    // What a failed operation has written is anybody's guess, but no input of its own.
    auto whole = options.in_place ? room_ : 2 * room_ + guard;
    bool input = i >= guard && i < guard + (options.in_place ? 0 : room_);
    if (failed && i >= guard && i < guard + whole && !input)
      continue;
    // A broken attempt over more ranks has left its traces where the caller expected more output.
    if (!output && i >= first_start && i < first_start + first_outputs)
      continue;
    // One that has taken a lost one's place was given what was asked for, not what lay around it.
    if (!output && its_device != device(rank))
      continue;
    if (found[i] != expected[i])
      return fmt::format("rank {} (now {} of {}): element {} of its region (output at {}, {} elements) is {}, not {}",
                         rank, place, members.size(), i, start, outputs, found[i], expected[i]);
  }
  return {};
}

} // namespace ringmaster::test
