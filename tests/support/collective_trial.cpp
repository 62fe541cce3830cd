#include "tests/support/collective_trial.hpp"

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
collective_trial::collective_trial(simulated_cluster& host, const collective_options& opts)
  : cluster(host), options(opts) {
  comm = cluster.init(opts.ranks);
  REQUIRE(comm.error() == "");
  std::vector<uint32_t> all;
  for (uint32_t rank = 0; rank < opts.ranks; ++rank)
    all.push_back(rank);
  world_ = world_of(all);
  for (auto rank : all)
    room_ = std::max({room_, input_count(opts.kind, world_, rank), output_count(opts.kind, world_, rank)});
  for (auto rank : all) {
    std::vector<int64_t> region(3 * guard + 2 * room_);
    for (uint64_t i = 0; i < region.size(); ++i)
      region[i] = static_cast<int64_t>(1'000'003 * (rank + 1) + 7 * i + i * i);
    before_.push_back(region);
    cluster.copy_in(device(rank), base(rank), byte_block::of(std::move(region)));
  }
}

plan_request collective_trial::world_of(const std::vector<uint32_t>& group) const {
  auto place_of = [&](uint32_t rank) {
    return static_cast<uint32_t>(std::find(group.begin(), group.end(), rank) - group.begin());
  };
  auto what = collective_of(options);
  what.set_root(place_of(options.root));
  what.set_peer(place_of(options.peer));
  auto world = request_of(what, static_cast<uint32_t>(group.size()), 0);
  world.counts.clear();
  if (options.counts.empty())
    return world;
  for (auto rank : group)
    if (options.kind != proto::ALL_TO_ALL)
      world.counts.push_back(options.counts[rank]);
    else
      for (auto to : group)
        world.counts.push_back(options.counts[rank * options.ranks + to]);
  return world;
}

std::string collective_trial::launch() {
  proto::CollectiveRequest x;
  x.set_comm_id(comm.commid());
  *x.mutable_collective() = collective_of(options);
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    x.add_inputs(base(rank) + guard * 8);
    if (!options.in_place)
      x.add_outputs(base(rank) + (2 * guard + room_) * 8);
  }
  return cluster.ask_coordinator<proto::CollectiveResponse>(std::move(x)).error();
}

/// The ranks whose epoch ended the operation.
std::vector<uint32_t> collective_trial::deciding_group() {
  std::map<uint64_t, std::vector<uint32_t>> epochs;
  uint64_t decided = 0;
  auto ranks_of = [&](const auto& ids) {
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < options.ranks; ++rank)
      if (std::count(ids.begin(), ids.end(), device(rank)) != 0)
        ranks.push_back(rank);
    return ranks;
  };
  for (auto& x : cluster.history())
    if (x.has_communicator_created())
      epochs[1] = ranks_of(x.communicator_created().device_ids());
    else if (x.has_epoch_opened())
      epochs[x.epoch_opened().epoch()] = ranks_of(x.epoch_opened().device_ids());
    else if (x.has_operation_ended())
      decided = x.operation_ended().epoch();
  return epochs[decided];
}

int64_t collective_trial::result(const std::vector<uint32_t>& group, uint32_t place, uint64_t index) const {
  auto from = meaning_of(options.kind, world_of(group), place, index);
  auto input = [&](uint32_t rank, uint64_t i) {
    auto offset = options.in_place ? in_place(options.kind, world_, rank).input : 0; // where it was at the start
    return static_cast<uint64_t>(before_[rank][guard + offset + i]);
  };
  if (!from.all_ranks)
    return static_cast<int64_t>(input(group[from.rank], from.index));
  uint64_t sum = 0;
  for (auto rank : group)
    sum += input(rank, from.index);
  return static_cast<int64_t>(sum);
}

std::string collective_trial::judge(const gpu_sim::GetCommStatusResponse& status, const std::vector<uint32_t>& killed) {
  auto group = deciding_group();
  if (group.empty())
    return "the journal does not say which group ended the operation";
  auto failed = status.status() == gpu_sim::FAILED;
  for (uint32_t place = 0; place < group.size(); ++place)
    if (std::count(killed.begin(), killed.end(), group[place]) == 0)
      if (auto wrong = judge_rank(group, place, failed); !wrong.empty())
        return wrong;
  return {};
}

std::string collective_trial::judge_rank(const std::vector<uint32_t>& group, uint32_t place, bool failed) {
  auto rank = group[place];
  auto world = world_of(group);
  auto expected = before_[rank];
  uint64_t start = options.in_place ? guard + in_place(options.kind, world, place).output : 2 * guard + room_;
  uint64_t outputs = failed ? 0 : output_count(options.kind, world, place);
  uint64_t first_start = options.in_place ? guard + in_place(options.kind, world_, rank).output : start;
  uint64_t first_outputs = output_count(options.kind, world_, rank);
  for (uint64_t i = 0; i < outputs; ++i)
    expected[start + i] = result(group, place, i);
  auto found = elements_of<int64_t>(cluster.copy_out(device(rank), base(rank), expected.size() * 8));
  for (uint64_t i = 0; i < expected.size(); ++i) {
    // What a failed operation has written is anybody's guess, but no input of its own.
    auto whole = options.in_place ? room_ : 2 * room_ + guard;
    bool input = i >= guard && i < guard + (options.in_place ? 0 : room_);
    if (failed && i >= guard && i < guard + whole && !input)
      continue;
    // A broken attempt over more ranks has left its traces where the caller expected more output.
    if (!(i >= start && i < start + outputs) && i >= first_start && i < first_start + first_outputs)
      continue;
    if (found[i] != expected[i])
      return fmt::format("rank {} (now {} of {}): element {} of its region (output at {}, {} elements) is {}, not {}",
                         rank, place, group.size(), i, start, outputs, found[i], expected[i]);
  }
  return {};
}

} // namespace ringmaster::test
