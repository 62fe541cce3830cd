#include "tools/bench/bench_sizes.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>

namespace ringmaster {

std::vector<std::string> algorithms_for(const bench_options& x) {
  if (x.algorithm != "all")
    return {x.algorithm};
  // Some algorithms refuse blocks of several sizes.
  const auto request = request_of(collective_of(x, 1), x.devices, 0);
  std::vector<std::string> result;
  for (auto& known : algorithms())
    if (known.kind == x.kind && (!x.uneven || find_algorithm(known.kind, known.name, request)))
      result.emplace_back(known.name);
  return result;
}

std::vector<uint64_t> sizes_of(const bench_options& x) {
  std::vector<uint64_t> result;
  for (auto bytes = x.min_bytes; bytes <= x.max_bytes; bytes *= x.factor) {
    result.push_back(bytes);
    if (x.kind == proto::BARRIER || bytes == 0)
      break;
  }
  return result;
}

namespace {

/// Bytes of scratch that a file's schedules want at the largest size, at the rank that wants most.
uint64_t written_scratch(const bench_options& x) {
  if (!x.written)
    return 0;
  uint64_t elements = 0;
  for (const auto& rank : x.written->ranks)
    elements = std::max(elements, rank.scratch_count);
  auto own = size_count(x.kind, x.written->request) * size_of(x.datatype);
  return elements * size_of(x.datatype) * (own == 0 ? 1 : x.max_bytes / own);
}

/// Bytes of scratch that the algorithms want at the largest size, and the shadow of an output that lies on its input.
uint64_t planned_scratch(const bench_options& x) {
  if (x.written)
    return 0;
  const auto element = size_of(x.datatype);
  auto request = request_of(collective_of(x, count_for_size(x.kind, x.devices, x.max_bytes / element)), x.devices, 0);
  const auto* jointly = first_shared_memory(x.kind); // what "auto" is where the scratch is this process's
  uint64_t scratch = 0, output = 0;
  for (uint32_t rank = 0; rank<x.devices; rank += x.devices> 64 ? 61 : 1) { // of many, some
    request.rank = rank;
    output = std::max(output, output_count(x.kind, request, rank));
    for (auto& algorithm : algorithms_for(x))
      if (auto planned = plan(x.kind, algorithm == "auto" && jointly ? jointly->name : algorithm, request))
        scratch = std::max(scratch, planned->scratch_count);
  }
  return (scratch + output) * element;
}

} // namespace

uint64_t memory_for(const bench_options& x) {
  auto whole = x.max_bytes; // the largest of both sides, whatever the kind, but for blocks that are counted once a rank
  if (x.kind == proto::ALL_GATHER || x.kind == proto::GATHER || x.kind == proto::SCATTER || x.kind == proto::ALL_TO_ALL
      || x.kind == proto::REDUCE_SCATTER)
    whole += 64u * x.devices;
  const bool apart = x.deterministic || (reduces(x.kind) && needs_all_inputs(x.datatype, x.op));
  auto buffers = (apart ? x.devices + 2u : 2u)
                 + (x.uneven ? 1u : 0u); // the scratch area is as large, for everybody's contributions
  return std::max(buffers * whole + written_scratch(x), planned_scratch(x)) + 65536;
}

} // namespace ringmaster
