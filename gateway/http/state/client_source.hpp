#pragma once

#include "client/client.hpp"
#include "gateway/http/state/cluster_source.hpp"

#include <memory>
#include <mutex>

namespace ringmaster::gateway {

/// The cluster of a coordinator. Each request uses a client of its own, which is kept for later requests.
class client_source final : public cluster_source {
public:
  client_source(caf::actor_system& system, coordinator_actor coordinator, caf::timespan limit)
    : system_(system), coordinator_(std::move(coordinator)), limit_(limit) {}

  caf::expected<proto::ClusterStatus> status() override;
  caf::expected<proto::JournalTailResponse> journal(const proto::JournalTailRequest& x) override;
  caf::error inject(device_id device, const proto::FaultRequest& fault) override;
  caf::expected<std::vector<std::string>> drain(const std::string& node, caf::timespan within) override;

private:
  using client_handle = std::unique_ptr<client>;

  template <class Call>
  auto with_client(Call call);

  caf::actor_system& system_;
  coordinator_actor coordinator_;
  const caf::timespan limit_;
  std::mutex mutex_;
  std::vector<client_handle> idle_;
};

} // namespace ringmaster::gateway
