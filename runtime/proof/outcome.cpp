#include "runtime/proof/outcome.hpp"

namespace ringmaster {

expected_outcome::expected_outcome(proto::CollectiveKind kind, const plan_request& request, rank_sets& sets)
  : kind_(kind), request_(request), sets_(sets) {
  if (kind == proto::ALL_TO_ALL)
    for (uint32_t rank = 0; rank < request.world_size; ++rank)
      cuts_.push_back(blocks::of(kind, request, rank));
}

/// `count` elements from `start` on are those of rank `from` from `index` on.
void expected_outcome::add(uint64_t start, uint64_t count, uint32_t from, uint64_t index) {
  if (count != 0)
    runs_.push_back({start, index - start, sets_.range(from, from + 1), false});
}

const std::vector<symbol_run>& expected_outcome::of(uint32_t rank) {
  runs_.clear();
  auto count = output_count(kind_, request_, rank);
  if (count == 0)
    return runs_;
  if (reduces(kind_)) {
    auto first = kind_ == proto::REDUCE_SCATTER ? blocks::of(kind_, request_, rank).start(rank) : 0;
    runs_.push_back({0, first, sets_.range(0, request_.world_size), true});
  } else if (kind_ == proto::ALL_GATHER || kind_ == proto::GATHER) {
    auto cut = blocks::of(kind_, request_, rank);
    for (uint32_t from = 0; from < cut.size(); ++from)
      add(cut.start(from), cut.count(from), from, 0);
  } else if (kind_ == proto::ALL_TO_ALL) {
    uint64_t start = 0;
    for (uint32_t from = 0; from < cuts_.size(); ++from) {
      add(start, cuts_[from].count(rank), from, cuts_[from].start(rank));
      start += cuts_[from].count(rank);
    }
  } else { // one rank's, whole or a block of it
    add(0, count, request_.root, kind_ == proto::SCATTER ? blocks::of(kind_, request_, rank).start(rank) : 0);
  }
  return runs_;
}

} // namespace ringmaster
