#include "actors/training/device_queries.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

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

void device_queries::find_missing(const step_change& change, bool required, std::function<void(device_id)> add,
                                  std::function<void(const caf::error&)> failed) {
  required_ = required_ || required;
  const auto& ranks = change.ranks();
  if (ranks.members().size() >= ranks.wanted() || change.progress().is_over())
    return;
  const auto count_max = ranks.wanted() + static_cast<uint32_t>(ranks.lost_count()); // some of them may be known
  find_free(count_max, [this, &change, count_max, add = std::move(add),
                        failed = std::move(failed)](const std::vector<device_id>& found) {
    const auto& its = change.ranks();
    const auto before = its.members().size();
    for (auto device : found)
      if (!change.progress().is_over() && its.members().size() < its.wanted() && its.find(device) == nullptr
          && !its.is_lost(device))
        add(device);
    const bool gathers = change.progress().now() == step_change::phase::gathering;
    required_ = required_ && gathers && its.members().size() < its.wanted();
    if (!required_)
      return;
    if (its.members().size() > before || count_max < its.wanted() + its.lost_count()) // there may be more
      return find_missing(change, false, add, failed);
    failed(make_error(errc::too_few_devices, fmt::format("{} of {} are free: other clients took some, or they are lost",
                                                         its.members().size(), counted(its.wanted(), "device"))));
  });
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
