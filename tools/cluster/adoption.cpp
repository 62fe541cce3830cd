#include "tools/cluster/adoption.hpp"

#include "actors/hosts/connections.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/endpoint.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>
#include <utility>

namespace ringmaster {

adoption::adoption(caf::actor_system& system, caf::scoped_actor& self, coordinator_actor coordinator,
                   const std::vector<cluster_device>& devices)
  : system_(system), self_(self), coordinator_(std::move(coordinator)) {
  for (auto& device : devices) {
    auto i = std::find_if(nodes_.begin(), nodes_.end(), [&](auto& x) { return x.where == device.node; });
    if (i == nodes_.end())
      i = nodes_.insert(nodes_.end(), listed_node{.where = device.node});
    i->device_ids.push_back(device.id.value);
  }
}

void adoption::try_missing() {
  auto now = std::chrono::steady_clock::now();
  if (now < next_try_)
    return;
  next_try_ = now + std::chrono::milliseconds{500}; // every other call checks the previous attempt
  for (auto& x : nodes_)
    if (!x.present)
      adopt(x);
}

void adoption::adopt(listed_node& x) {
  if (!x.found.valid()) {
    constexpr auto limit = std::chrono::seconds{5};
    x.found = std::async(std::launch::async, [&system = system_, where = x.where, limit] {
      return connect_to(system, where, limit, listener_kind::node);
    });
    return;
  }
  if (x.found.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
    return;
  auto found = x.found.get();
  if (!found)
    return missed(x, found.error());
  auto node = taken_as<node_actor>(*found, system_, text_of(x.where), "node");
  if (!node)
    return missed(x, node.error());
  ensure(!x.present, "a node is adopted once while it is present");
  self_->monitor(*node);
  x.present = node->address();
  x.reported = false;
  proto::Adopt join;
  join.set_host(x.where.host);
  join.set_port(x.where.port);
  for (auto id : x.device_ids)
    join.add_device_ids(id);
  self_->send(*node, std::move(join), caf::actor_cast<caf::strong_actor_ptr>(coordinator_));
}

void adoption::missed(listed_node& x, const caf::error& why) {
  if (!std::exchange(x.reported, true))
    spdlog::warn("no node answers at {} yet ({}); trying every second", text_of(x.where), render(why));
}

void adoption::on_down(const caf::down_msg& lost) {
  for (auto& x : nodes_)
    if (x.present == lost.source)
      x.present = nullptr;
}

} // namespace ringmaster
