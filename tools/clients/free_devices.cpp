#include "tools/clients/free_devices.hpp"

#include "actors/scheduling/awake_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

namespace ringmaster {

std::vector<const proto::ClusterInfo::Device*> free_devices(const proto::ClusterInfo& cluster) {
  std::vector<const proto::ClusterInfo::Device*> result;
  for (auto& x : cluster.devices())
    if (x.comm_ids().empty())
      result.push_back(&x);
  std::ranges::sort(result, {}, [](auto* x) { return x->metadata().deviceid().value(); });
  return result;
}

uint64_t least_memory_bytes(const std::vector<const proto::ClusterInfo::Device*>& devices) {
  uint64_t result = UINT64_MAX;
  for (auto* x : devices)
    result = std::min(result, x->metadata().maxmemaddr().value() - x->metadata().minmemaddr().value());
  return result;
}

caf::error check_free(const std::string& who, uint64_t wanted, const proto::ClusterInfo& cluster) {
  const auto free = free_devices(cluster).size();
  if (free >= wanted)
    return caf::none;
  std::set<uint64_t> owners;
  for (auto& x : cluster.devices())
    owners.insert(x.comm_ids().begin(), x.comm_ids().end());
  auto text = fmt::format("{} wants {}, and the cluster has {}", who, counted(wanted, "device"),
                          counted(static_cast<uint64_t>(cluster.devices_size()), "device"));
  if (!owners.empty())
    text += fmt::format(", of which {} {} free: the others belong to {} {}, which `ringmaster destroy {}` ends", free,
                        free == 1 ? "is" : "are", owners.size() == 1 ? "communicator" : "communicators",
                        fmt::join(owners, ", "), fmt::join(owners, " "));
  return make_error(errc::too_few_devices, text);
}

caf::expected<proto::ClusterInfo> await_free(client& user, const std::string& who, uint64_t wanted,
                                             caf::timespan patience, std::FILE* err) {
  const auto give_up = awake_clock::actor_now() + patience;
  for (auto reported = false;; std::this_thread::sleep_for(std::chrono::milliseconds{50})) {
    TRY(cluster, user.devices());
    auto problem = check_free(who, wanted, *cluster);
    if (!problem)
      return cluster;
    if (awake_clock::actor_now() >= give_up)
      return problem;
    if (!std::exchange(reported, true))
      fmt::print(err, "ringmaster {}: {} free, {} wanted: waits {} for the others\n", who,
                 counted(free_devices(*cluster).size(), "device"), wanted, duration_text(patience));
  }
}

} // namespace ringmaster
