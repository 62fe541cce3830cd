#include "tests/support/trials/collective_expectation.hpp"

#include "runtime/samples/sample_hash.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

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

collective_expectation::collective_expectation(const collective_options& opts, uint64_t salt) : options_(opts) {
  group all;
  for (uint32_t rank = 0; rank < opts.ranks; ++rank)
    all.push_back({rank});
  world_ = world_of(all);
  for (uint32_t rank = 0; rank < opts.ranks; ++rank)
    room_ = std::max({room_, input_count(opts.kind, world_, rank), output_count(opts.kind, world_, rank)});
  for (uint32_t rank = 0; rank < opts.ranks; ++rank) {
    auto& region = before_.emplace_back(bytes() / 8);
    const auto seed = sample_seed(rank, salt);
    for (uint64_t i = 0; i < region.size(); ++i)
      region[i] = static_cast<int64_t>(sample_hash(seed, i));
  }
}

plan_request collective_expectation::world_of(const group& members) const {
  auto place_of = [&](uint32_t rank) {
    auto its = std::find_if(members.begin(), members.end(), [=](auto& x) { return x.rank == rank; });
    return static_cast<uint32_t>(its - members.begin());
  };
  auto what = collective_of(options_);
  what.set_root(place_of(options_.root));
  what.set_peer(place_of(options_.peer));
  auto world = request_of(what, static_cast<uint32_t>(members.size()), 0);
  world.counts.clear();
  if (options_.counts.empty())
    return world;
  for (auto& x : members)
    if (options_.kind != proto::ALL_TO_ALL)
      world.counts.push_back(options_.counts[x.rank]);
    else
      for (auto& to : members)
        world.counts.push_back(options_.counts[x.rank * options_.ranks + to.rank]);
  return world;
}

int64_t collective_expectation::result(const group& members, const plan_request& world, uint32_t place,
                                       uint64_t index) const {
  auto from = meaning_of(options_.kind, world, place, index);
  auto input = [&](uint32_t rank, uint64_t i) {
    auto offset = options_.in_place ? in_place(options_.kind, world_, rank).input : 0; // where it was at the start
    return static_cast<uint64_t>(before_[rank][guard + offset + i]);
  };
  if (!from.all_ranks)
    return static_cast<int64_t>(input(members[from.rank].rank, from.index));
  uint64_t sum = 0;
  for (auto& x : members)
    sum += input(x.rank, from.index);
  return static_cast<int64_t>(sum);
}

std::string collective_expectation::wrong_in(const group& members, uint32_t place, bool failed,
                                             const std::vector<int64_t>& found) const {
  auto is_there = [&](uint32_t wanted) { return std::ranges::find(members, wanted, &holder::rank) != members.end(); };
  if (!failed && has_root(options_.kind) && !is_there(options_.root))
    return "a group without the root has no result";
  if (!failed && options_.kind == proto::SEND_RECV && !is_there(options_.peer))
    return "a group without the peer has no result";
  auto [rank, its_device, came_later] = members[place];
  auto world = world_of(members);
  auto expected = before_[rank];
  uint64_t start = options_.in_place ? guard + in_place(options_.kind, world, place).output : 2 * guard + room_;
  uint64_t outputs = failed ? 0 : output_count(options_.kind, world, place);
  uint64_t first_start = options_.in_place ? guard + in_place(options_.kind, world_, rank).output : start;
  uint64_t first_outputs = output_count(options_.kind, world_, rank);
  for (uint64_t i = 0; i < outputs; ++i)
    expected[start + i] = result(members, world, place, i);
  for (uint64_t i = 0; i < expected.size(); ++i) {
    bool output = i >= start && i < start + outputs;
    // What a failed operation has written is anybody's guess, but no input of its own.
    auto whole = options_.in_place ? room_ : 2 * room_ + guard;
    bool input = i >= guard && i < guard + (options_.in_place ? 0 : room_);
    if (failed && i >= guard && i < guard + whole && !input)
      continue;
    // A broken attempt over more ranks has left its traces where the caller expected more output.
    if (!output && i >= first_start && i < first_start + first_outputs)
      continue;
    // One that has taken a lost one's place was given what was asked for, not what lay around it.
    if (!output && came_later)
      continue;
    if (found[i] != expected[i])
      return fmt::format("rank {} (now {} of {}, device 0x{:x}): element {} of its region (output at {}, {} elements) "
                         "is {}, not {}",
                         rank, place, members.size(), its_device, i, start, outputs, found[i], expected[i]);
  }
  return {};
}

} // namespace ringmaster::test
