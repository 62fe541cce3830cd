#include "runtime/schedule/collective.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace ringmaster {

namespace {

using proto::CollectiveKind;

constexpr std::pair<CollectiveKind, std::string_view> names[] = {
  {proto::ALL_REDUCE, "all_reduce"},
  {proto::REDUCE, "reduce"},
  {proto::BROADCAST, "broadcast"},
  {proto::ALL_GATHER, "all_gather"},
  {proto::REDUCE_SCATTER, "reduce_scatter"},
  {proto::ALL_TO_ALL, "all_to_all"},
  {proto::GATHER, "gather"},
  {proto::SCATTER, "scatter"},
  {proto::BARRIER, "barrier"},
  {proto::SEND_RECV, "send_recv"},
};

caf::error check_rank(std::string_view what, uint32_t rank, uint32_t world_size) {
  if (rank < world_size)
    return caf::none;
  return invalid(fmt::format("there is no {} {} in a world of {}: ranks are 0 to {}", what, rank, world_size,
                             world_size - 1));
}

caf::error check_hosts(const plan_request& request) {
  if (request.hosts.empty())
    return caf::none;
  if (request.hosts.size() != request.world_size)
    return invalid(fmt::format("the hosts of {} are known, and there are {}", counted(request.hosts.size(), "rank"),
                               request.world_size));
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    if (request.hosts[rank] >= request.world_size)
      return invalid(fmt::format("rank {} is on host {}: hosts are numbered from 0, and {} have no more than {}", rank,
                                 request.hosts[rank], counted(request.world_size, "rank"), request.world_size));
  return caf::none;
}

caf::error check_counts(CollectiveKind kind, const plan_request& request) {
  constexpr auto elements_max = uint64_t{1} << 63;
  auto needed = uint64_t{request.world_size} * (kind == proto::ALL_TO_ALL ? request.world_size : 1);
  if (!request.counts.empty() && !has_v_variant(kind))
    return invalid(fmt::format("{} has no counts by rank", name_of(kind)));
  if (!request.counts.empty() && request.counts.size() != needed)
    return invalid(fmt::format("{} over {} ranks wants {} counts, and there are {}", name_of(kind), request.world_size,
                               needed, request.counts.size()));
  uint64_t total = 0;
  for (auto count : request.counts)
    if (count >= elements_max || (total += count) >= elements_max)
      return invalid(fmt::format("the counts of {} are together more than 2^63", name_of(kind)));
  auto parts = has_v_variant(kind) ? request.world_size : 1;
  if (request.counts.empty() && request.count >= elements_max / parts)
    return invalid(fmt::format("count {} for {} ranks is more than 2^63 elements", request.count, request.world_size));
  return caf::none;
}

uint64_t block_count(CollectiveKind kind, const plan_request& request, uint32_t rank) {
  return blocks::of(kind, request, rank).count(rank);
}

} // namespace

std::string_view name_of(CollectiveKind kind) {
  for (auto& [known, name] : names)
    if (known == kind)
      return name;
  return "unknown";
}

caf::expected<CollectiveKind> parse_collective_kind(std::string_view text) {
  std::string known;
  for (auto& [kind, name] : names) {
    if (text == name || (has_v_variant(kind) && text == std::string{name} + "_v"))
      return kind;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  return invalid(fmt::format("there is no collective \"{}\"; there are: {}", text, known));
}

const std::vector<CollectiveKind>& collective_kinds() {
  static const auto all = [] {
    std::vector<CollectiveKind> result;
    for (auto& [kind, name] : names)
      result.push_back(kind);
    return result;
  }();
  return all;
}

bool has_root(CollectiveKind kind) {
  return kind == proto::REDUCE || kind == proto::BROADCAST || kind == proto::GATHER || kind == proto::SCATTER
         || kind == proto::SEND_RECV;
}

bool has_v_variant(CollectiveKind kind) {
  return kind == proto::ALL_GATHER || kind == proto::REDUCE_SCATTER || kind == proto::ALL_TO_ALL
         || kind == proto::GATHER || kind == proto::SCATTER;
}

caf::error check_request(CollectiveKind kind, const plan_request& request) {
  if (!proto::CollectiveKind_IsValid(kind))
    return invalid(fmt::format("collective {} is not one of this version's", static_cast<int>(kind)));
  if (request.world_size == 0)
    return invalid("a collective wants at least one rank, and the world size is 0");
  RETURN_ERROR(check_rank("rank", request.rank, request.world_size));
  RETURN_ERROR(check_hosts(request));
  if (has_root(kind))
    RETURN_ERROR(check_rank("root", request.root, request.world_size));
  if (kind == proto::SEND_RECV) {
    RETURN_ERROR(check_rank("peer", request.peer, request.world_size));
    if (request.peer == request.root)
      return invalid(fmt::format("send_recv from rank {} to itself: a copy within the device does that", request.root));
  }
  return check_counts(kind, request);
}

uint64_t input_count(CollectiveKind kind, const plan_request& request, uint32_t rank) {
  switch (kind) {
    case proto::ALL_REDUCE:
    case proto::REDUCE: return request.count;
    case proto::BROADCAST:
    case proto::SEND_RECV: return rank == request.root ? request.count : 0;
    case proto::ALL_GATHER:
    case proto::GATHER: return block_count(kind, request, rank);
    case proto::REDUCE_SCATTER:
    case proto::ALL_TO_ALL: return blocks::of(kind, request, rank).total();
    case proto::SCATTER: return rank == request.root ? blocks::of(kind, request, rank).total() : 0;
    default: return 0;
  }
}

uint64_t output_count(CollectiveKind kind, const plan_request& request, uint32_t rank) {
  switch (kind) {
    case proto::ALL_REDUCE:
    case proto::BROADCAST: return request.count;
    case proto::REDUCE: return rank == request.root ? request.count : 0;
    case proto::SEND_RECV: return rank == request.peer ? request.count : 0;
    case proto::ALL_GATHER: return blocks::of(kind, request, rank).total();
    case proto::GATHER: return rank == request.root ? blocks::of(kind, request, rank).total() : 0;
    case proto::REDUCE_SCATTER:
    case proto::SCATTER: return block_count(kind, request, rank);
    case proto::ALL_TO_ALL: return blocks::received(request, rank).total();
    default: return 0;
  }
}

placement in_place(CollectiveKind kind, const plan_request& request, uint32_t rank) {
  auto own_block = [&] { return blocks::of(kind, request, rank).start(rank); };
  switch (kind) {
    case proto::ALL_GATHER: return {own_block(), 0};
    case proto::GATHER: return {rank == request.root ? own_block() : 0, 0};
    case proto::REDUCE_SCATTER: return {0, own_block()};
    case proto::SCATTER: return {0, rank == request.root ? own_block() : 0};
    default: return {};
  }
}

bool replaces_input(CollectiveKind kind) {
  return reduces(kind) || kind == proto::ALL_TO_ALL;
}

element_source meaning_of(CollectiveKind kind, const plan_request& request, uint32_t rank, uint64_t index) {
  auto block_that_holds = [](const blocks& cut, uint64_t i) {
    uint32_t block = 0;
    while (i >= cut.start(block) + cut.count(block))
      ++block;
    return block;
  };
  switch (kind) {
    case proto::ALL_REDUCE:
    case proto::REDUCE: return {true, 0, index};
    case proto::REDUCE_SCATTER: return {true, 0, blocks::of(kind, request, rank).start(rank) + index};
    case proto::SCATTER: return {false, request.root, blocks::of(kind, request, rank).start(rank) + index};
    case proto::ALL_GATHER:
    case proto::GATHER: {
      auto cut = blocks::of(kind, request, rank);
      auto from = block_that_holds(cut, index);
      return {false, from, index - cut.start(from)};
    }
    case proto::ALL_TO_ALL: {
      auto cut = blocks::received(request, rank);
      auto from = block_that_holds(cut, index);
      return {false, from, blocks::of(kind, request, from).start(rank) + index - cut.start(from)};
    }
    default: return {false, request.root, index};
  }
}

blocks blocks::even(uint64_t count, uint32_t parts) {
  std::vector<uint64_t> starts{0};
  starts.reserve(size_t{parts} + 1);
  for (uint32_t i = 0; i < parts; ++i)
    starts.push_back(starts.back() + count / parts + (i < count % parts ? 1 : 0));
  return blocks{std::move(starts)};
}

blocks blocks::uniform(uint64_t count, uint32_t parts) {
  std::vector<uint64_t> starts{0};
  starts.reserve(size_t{parts} + 1);
  for (uint32_t i = 0; i < parts; ++i)
    starts.push_back(starts.back() + count);
  return blocks{std::move(starts)};
}

blocks blocks::of(const std::vector<uint64_t>& counts) {
  std::vector<uint64_t> starts{0};
  starts.reserve(counts.size() + 1);
  for (auto count : counts)
    starts.push_back(starts.back() + count);
  return blocks{std::move(starts)};
}

blocks blocks::of_kind(int kind, const plan_request& request, uint32_t rank) {
  if (request.counts.empty())
    return uniform(request.count, request.world_size);
  if (kind != proto::ALL_TO_ALL)
    return of(request.counts);
  auto first = request.counts.begin() + static_cast<ptrdiff_t>(rank) * request.world_size;
  return of({first, first + request.world_size});
}

blocks blocks::received(const plan_request& request, uint32_t rank) {
  if (request.counts.empty())
    return uniform(request.count, request.world_size);
  std::vector<uint64_t> counts;
  for (uint32_t from = 0; from < request.world_size; ++from)
    counts.push_back(request.counts[size_t{from} * request.world_size + rank]);
  return of(counts);
}

block_range block_of(buffer where, uint64_t count, uint32_t blocks, uint32_t index) {
  auto size = count / blocks;
  auto larger = count % blocks;
  return {where, index * size + std::min<uint64_t>(index, larger), size + (index < larger ? 1 : 0)};
}

} // namespace ringmaster
