#include "runtime/proof/proof.hpp"

#include "messages/errc.hpp"

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

barrier_knowledge::barrier_knowledge(const std::vector<schedule>& ranks)
  : ranks_(ranks), begun_(ranks.size()), round_(ranks.size(), UINT32_MAX) {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    now_.push_back(sets_.range(rank, rank + 1));
    known_.emplace_back(ranks[rank].steps.size());
  }
}

void barrier_knowledge::started(step_ref x) {
  const auto& what = ranks_[x.rank].steps[x.index];
  if (what.round != round_[x.rank]) {
    round_[x.rank] = what.round;
    begun_[x.rank] = now_[x.rank];
  }
  // What other steps of the round bring may come later, but what those of its own chain brought is there.
  known_[x.rank][x.index] = what.then ? known_[x.rank][x.index - 1] : begun_[x.rank];
}

caf::error barrier_knowledge::moved(step_ref from, step_ref to) {
  const auto& what = ranks_[to.rank].steps[to.index];
  if (what.what == action::recv_reduce || what.what == action::reduce || what.what == action::fold || what.finish)
    return invalid(place_of(to.rank, to.index, what) + ": barrier does not reduce");
  auto& known = known_[to.rank][to.index];
  known = sets_.unite(known, known_[from.rank][from.index]).both;
  now_[to.rank] = sets_.unite(now_[to.rank], known).both;
  return {};
}

caf::error barrier_knowledge::check_end() {
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
    for (uint32_t other = 0; other < ranks_.size(); ++other)
      if (!sets_.contains(now_[rank], other))
        return invalid(fmt::format("rank {}, after its last round: it may end before rank {} has begun; it knows of {}",
                                   rank, other, sets_.text(now_[rank])));
  return {};
}

} // namespace ringmaster
