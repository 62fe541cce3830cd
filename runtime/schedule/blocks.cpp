#include "runtime/schedule/collective.hpp"

#include <algorithm>

namespace ringmaster {

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
