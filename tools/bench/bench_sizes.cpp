#include "tools/bench/bench_sizes.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
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
  ensure(x.factor >= 2, "sizes grow");
  std::vector<uint64_t> result;
  for (auto bytes = x.min_bytes; bytes <= x.max_bytes; bytes *= x.factor) {
    result.push_back(bytes);
    if (x.kind == proto::BARRIER || bytes == 0)
      break;
  }
  return result;
}

namespace {

/// Bytes of scratch that a file's schedules need at the largest size, at the rank that needs most.
uint64_t written_scratch(const bench_options& x) {
  if (!x.written)
    return 0;
  uint64_t elements = 0;
  for (const auto& rank : x.written->ranks)
    elements = std::max(elements, rank.scratch_count);
  auto own = size_count(x.kind, x.written->request) * size_of(x.datatype);
  return elements * size_of(x.datatype) * (own == 0 ? 1 : x.max_bytes / own);
}

/// Bytes of scratch that the algorithms need at the largest size, and of the shadow of an in-place output.
uint64_t planned_scratch(const bench_options& x) {
  if (x.written)
    return 0;
  const auto element = size_of(x.datatype);
  auto request = request_of(collective_of(x, count_for_size(x.kind, x.devices, x.max_bytes / element)), x.devices, 0);
  const auto* shared = first_shared_memory(x.kind); // "auto" in this process
  uint64_t scratch = 0, output = 0;
  for (uint32_t rank = 0; rank<x.devices; rank += x.devices> 64 ? 61 : 1) { // a sample of many ranks
    request.rank = rank;
    output = std::max(output, output_count(x.kind, request, rank));
    for (auto& algorithm : algorithms_for(x))
      if (auto planned = plan(x.kind, algorithm == "auto" && shared ? shared->name : algorithm, request))
        scratch = std::max(scratch, planned->scratch_count);
  }
  return (scratch + output) * element;
}

} // namespace

uint64_t memory_for(const bench_options& x) {
  auto whole = x.max_bytes; // the larger side, without blocks that are counted for each rank
  if (x.kind == proto::ALL_GATHER || x.kind == proto::GATHER || x.kind == proto::SCATTER || x.kind == proto::ALL_TO_ALL
      || x.kind == proto::REDUCE_SCATTER)
    whole += 64u * x.devices;
  const bool collects_inputs = x.deterministic || (reduces(x.kind) && needs_all_inputs(x.datatype, x.op));
  auto buffers = (collects_inputs ? x.devices + 2u : 2u) + (x.uneven ? 1u : 0u); // a scratch area for all contributions
  return std::max(buffers * whole + written_scratch(x), planned_scratch(x)) + 65536;
}

} // namespace ringmaster
