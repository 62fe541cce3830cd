#include "tools/cluster/adoption.hpp"

#include <caf/io/middleman.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace ringmaster {

adoption::adoption(caf::actor_system& system, caf::scoped_actor& self, coordinator_actor coordinator,
                   const std::vector<cluster_device>& devices)
  : system_(system), self_(self), coordinator_(std::move(coordinator)) {
  for (auto& device : devices) {
    auto i = std::find_if(nodes_.begin(), nodes_.end(), [&](auto& x) { return x.where == device.node; });
    if (i == nodes_.end())
      i = nodes_.insert(nodes_.end(), {device.node, {}, {}, false});
    i->device_ids.push_back(device.id.value);
  }
}

void adoption::try_missing() {
  auto now = std::chrono::steady_clock::now();
  if (now < next_try_)
    return;
  next_try_ = now + std::chrono::seconds{1};
  for (auto& x : nodes_)
    if (!x.present)
      adopt(x);
}

void adoption::adopt(listed_node& x) {
  auto found = system_.middleman().remote_actor<node_actor>(x.where.host, x.where.port);
  if (!found) {
    if (!std::exchange(x.told, true))
      spdlog::warn("no node answers at {}:{} yet ({}); it is tried every second", x.where.host, x.where.port,
                   render(found.error()));
    return;
  }
  self_->monitor(*found);
  x.present = found->address();
  x.told = false;
  proto::Adopt join;
  join.set_host(x.where.host);
  join.set_port(x.where.port);
  for (auto id : x.device_ids)
    join.add_device_ids(id);
  self_->send(*found, std::move(join), caf::actor_cast<caf::strong_actor_ptr>(coordinator_));
}

void adoption::on_down(const caf::down_msg& lost) {
  for (auto& x : nodes_)
    if (x.present == lost.source)
      x.present = nullptr;
}

} // namespace ringmaster
