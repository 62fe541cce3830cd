#include "actors/communicators/operation_planner.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <algorithm>

namespace ringmaster {

void operation_planner::set_hosts(std::vector<uint32_t> hosts) {
  hosts_ = std::move(hosts);
  picks_.forget();
}

caf::expected<operation> operation_planner::operation_for(
  const proto::CollectiveRequest& request, const rank_history& members, epoch_number in_epoch, bool shares_memory) {
  const auto* of_epoch = in_epoch == epoch_number{} ? nullptr : members.in(in_epoch);
  ensure(in_epoch == epoch_number{} || of_epoch != nullptr, "a call is for an epoch that is remembered");
  const bool lacks_ranks = of_epoch != nullptr && of_epoch->size() != members.ranks().size();
  const auto world = lacks_ranks ? members.in_with_dropped(in_epoch) : std::vector<rank_device>{};
  auto& ranks = lacks_ranks ? world : members.ranks();
  auto algorithm = algorithm_for(request.collective(), ranks.size(), shares_memory);
  if (!algorithm)
    return std::move(algorithm.error());
  auto op = make_operation(request, *algorithm, ranks);
  if (!op)
    return op;
  auto chunk = chunk_of(op->what(), ranks.size(), shares_memory);
  if (!chunk)
    return std::move(chunk.error());
  op->plan.mutable_collective()->set_chunk_count(*chunk);
  for (auto& x : world)
    if (x.dropped)
      if (auto why = op->drop(x.id()))
        return why;
  return op;
}

bool operation_planner::adds_in_rank_order(const proto::Collective& what) const {
  return (options_.deterministic && order_matters(what.kind(), what.datatype(), what.op()))
         || (reduces(what.kind()) && needs_all_inputs(what.datatype(), what.op()));
}

caf::expected<std::string> operation_planner::algorithm_for(const proto::Collective& what, size_t ranks,
                                                            bool shares_memory) {
  if (what.algorithm() != "auto")
    return what.algorithm();
  const algorithm* known = nullptr;
  if (shares_memory)
    known = first_shared_memory(what.kind());
  else if (adds_in_rank_order(what))
    known = first_in_rank_order(what.kind()); // all others keep contributions separate at a higher cost
  if (known != nullptr)
    return std::string{known->name};
  auto picked = picks_.pick(what.kind(), network_request(what, ranks), size_of(what.datatype()), options_.costs);
  if (!picked)
    return std::move(picked.error());
  return std::string{(*picked)->name};
}

caf::expected<uint64_t> operation_planner::chunk_of(const proto::Collective& what, size_t ranks, bool shares_memory) {
  if (what.chunk_count() != 0 || (shares_memory))
    return what.chunk_count();
  return picks_.chunk(what.kind(), what.algorithm(), network_request(what, ranks), size_of(what.datatype()),
                      options_.costs);
}

plan_request operation_planner::network_request(const proto::Collective& what, size_t ranks) const {
  auto request = request_of(what, static_cast<uint32_t>(ranks), 0);
  if (hosts_.size() == ranks) // else ranks have been lost since the caller's epoch
    request.hosts = hosts_;
  return request;
}

fusing_limits operation_planner::may_fuse(const std::vector<rank_device>& ranks) const {
  constexpr uint64_t packed_max = 1u << 20;
  constexpr uint64_t series_max = 256u << 20; // to run a series again costs some tenths of a second
  uint64_t smallest_memory = UINT64_MAX;
  for (auto& x : ranks)
    smallest_memory = std::min(smallest_memory, x.metadata.maxmemaddr().value() - x.metadata.minmemaddr().value());
  // Separate contributions of all ranks take scratch, which is as large as the memory.
  const auto separate = std::min(series_max, smallest_memory / (4 * std::max<size_t>(ranks.size(), 1)));
  return {options_.deterministic, std::min(packed_max, separate), separate, series_max};
}

} // namespace ringmaster
