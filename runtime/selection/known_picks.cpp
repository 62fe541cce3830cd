#include "runtime/selection/known_picks.hpp"

#include <algorithm>

namespace ringmaster {

caf::expected<const algorithm*> known_picks::pick(proto::CollectiveKind kind, const plan_request& request,
                                                  uint64_t element_bytes, const cost_constants& constants) {
  auto found = std::find_if(known_.begin(), known_.end(), [&](auto& x) {
    return x.kind == kind && x.element_bytes == element_bytes && x.request == request;
  });
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
    return found->which;
  }
  auto picked = select_algorithm(kind, request, element_bytes, constants);
  if (!picked)
    return std::move(picked.error());
  known_.push_front({kind, request, element_bytes, picked->which});
  if (known_.size() > picks_max)
    known_.pop_back();
  return picked->which;
}

} // namespace ringmaster
