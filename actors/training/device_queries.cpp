#include "actors/training/device_queries.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

bool device_queries::is_loss(const caf::error& problem) {
  return code_of(problem) == errc::device_lost || code_of(problem) == errc::unknown_device;
}

void device_queries::ask_whether_lost(device_id device, std::function<void(const caf::error&)> then) {
  gpu_sim::DeviceId id;
  id.set_value(device.value);
  self_->request(coordinator_, limit_, id)
    .then([then](const device_handle&) { then(caf::none); },
          [then](const caf::error& problem) { then(is_loss(problem) ? problem : caf::error{}); });
}

void device_queries::find_free(uint32_t count_max, std::function<void(const std::vector<device_id>&)> then) {
  ensure(count_max > 0, "a search is for devices");
  if (searching_)
    return;
  searching_ = true;
  proto::ClusterInfoRequest free;
  free.set_free_max(count_max);
  self_->request(coordinator_, limit_, free)
    .then(
      [this, then](const proto::ClusterInfo& x) {
        ensure(searching_, "an answer belongs to a search");
        searching_ = false;
        std::vector<device_id> found;
        for (auto& each : x.devices())
          found.push_back(device_id{each.metadata().deviceid().value()});
        then(found);
      },
      [this](const caf::error&) { searching_ = false; });
}

void device_queries::find_drained(std::function<void(const std::map<device_id, std::string>&)> then) {
  auto look = [then](const proto::ClusterInfo& x) {
    std::map<uint64_t, std::string> nodes;
    for (auto& node : x.nodes())
      if (node.draining())
        nodes[node.node_id()] = node.name();
    std::map<device_id, std::string> result;
    for (auto& device : x.devices())
      if (auto node = nodes.find(device.node_id()); node != nodes.end())
        result[device_id{device.metadata().deviceid().value()}] = fmt::format("node {} is drained", node->second);
    then(result);
  };
  self_->request(coordinator_, limit_, proto::ClusterInfoRequest{}).then(look, [](const caf::error&) {}); // asked again
}

} // namespace ringmaster::training
