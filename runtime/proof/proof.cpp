#include "runtime/proof/proof.hpp"

#include "messages/errc.hpp"
#include "runtime/proof/barrier_knowledge.hpp"

#include <fmt/format.h>

namespace ringmaster {

std::vector<buffer_counts> buffer_counts_of(proto::CollectiveKind kind, const plan_request& request) {
  std::vector<buffer_counts> result;
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    result.push_back({input_count(kind, request, rank), output_count(kind, request, rank)});
  return result;
}

proof prove(proto::CollectiveKind kind, const plan_request& request, const std::vector<schedule>& ranks, uint64_t seed,
            addition_order order) {
  if (ranks.size() != request.world_size) {
    proof result;
    result.fault = invalid(fmt::format("there are {} schedules for {} ranks", ranks.size(), request.world_size));
    return result;
  }
  auto counts = buffer_counts_of(kind, request);
  if (kind == proto::BARRIER) {
    barrier_knowledge knowledge{ranks};
    auto result = walk_schedules(ranks, counts, seed, knowledge);
    if (!result.fault)
      result.fault = knowledge.check_end();
    return result;
  }
  symbol_walk symbols{kind, request, ranks, counts, order};
  auto result = walk_schedules(ranks, counts, seed, symbols);
  if (!result.fault)
    result.fault = symbols.check_outcome();
  return result;
}

} // namespace ringmaster
