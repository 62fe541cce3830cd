#include "runtime/coordination/recent_departures.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

void recent_departures::add(proto::ClusterInfo::Gone what, uint64_t when_ns) {
  what.set_time_ns(when_ns);
  latest_.push_back(std::move(what));
  if (latest_.size() > kept_max)
    latest_.pop_front();
  ensure(latest_.size() <= kept_max, "no more departures are kept than the limit");
}

std::string recent_departures::name_of(node_id node) const {
  for (auto& x : latest_)
    if (x.what() == proto::ClusterInfo::Gone::NODE && x.id() == node.value)
      return x.name();
  return {};
}

void recent_departures::write_to(proto::ClusterInfo& info) const {
  for (auto& x : latest_)
    *info.add_gone() = x;
}

} // namespace ringmaster
