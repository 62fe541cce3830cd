#pragma once

#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "gateway/course/course_gateway.hpp"
#include "tests/gateway/course_client.hpp"

#include <caf/actor_system.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster::test {

/// Of the lab's form, at any free port.
constexpr auto lab_listener = "[lab]\naddress = 127.0.0.1:0\n";

/// A cluster in this process, and a gateway that serves it on loopback addresses.
class served_cluster {
public:
  /// Stands between the gateway and the coordinator.
  using front = std::function<coordinator_actor(caf::actor_system&, const coordinator_actor&)>;

  /// `listeners`: as in a configuration file; `options`: of the cluster; `between`: none: nothing.
  explicit served_cluster(std::string_view listeners = lab_listener, uint32_t devices = 4,
                          std::vector<std::string> options = {"--device.memory-bytes=1MiB"}, const front& between = {},
                          const gateway::grpc_certificates& certificates = {}, gateway::caller_rules callers = {})
    : settings_(std::make_unique<configuration>()) {
    options.push_back("--device.count=" + std::to_string(devices));
    options.push_back("--log.level=off");
    REQUIRE_FALSE(settings_->read(std::move(options), std::nullopt));
    system_ = std::make_unique<caf::actor_system>(*settings_);
    cluster_ = std::move(*cluster::start(*system_, settings_->values(), true));
    auto parsed = gateway::parse_listeners(listeners);
    REQUIRE_MESSAGE(parsed, render(parsed.error()));
    const auto& host = cluster_->coordinator();
    gateway_ = std::move(*gateway::course_gateway::start(*system_, between ? between(*system_, host) : host,
                                                         std::move(*parsed), certificates, std::move(callers)));
  }

  /// A new client of a listener's coordinator services, or of one of its devices.
  course_client client_of(size_t listener = 0) const { return course_client{gateway_->listeners()[listener].address}; }
  course_client client_of_device(size_t device, size_t listener = 0) const {
    return course_client{gateway_->listeners()[listener].devices[device]};
  }

  /// A client of the cluster itself.
  client user() { return client{*system_, cluster_->coordinator()}; }
  /// The device dies in the next collective, after this number of rounds.
  void kill_in_round(uint64_t device, uint32_t round) {
    proto::FaultRequest fault;
    fault.set_kind(proto::FaultRequest::KILL);
    fault.set_at_step(true);
    fault.set_step(round);
    REQUIRE_FALSE(user().inject(device_id{device}, fault));
  }
  /// The device answers nothing for this time, from the next collective on.
  void hang_in_collective(uint64_t device, std::chrono::nanoseconds time) {
    proto::FaultRequest fault;
    fault.set_kind(proto::FaultRequest::HANG);
    fault.set_delay_ns(static_cast<uint64_t>(time.count()));
    fault.set_at_step(true);
    REQUIRE_FALSE(user().inject(device_id{device}, fault));
  }
  void kill(uint64_t device) { REQUIRE_FALSE(user().inject(device_id{device}, {})); }

  const gateway::course_gateway& gateway() const { return *gateway_; }
  void stop_gateway() { gateway_.reset(); }

private:
  std::unique_ptr<configuration> settings_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<cluster> cluster_;
  std::unique_ptr<gateway::course_gateway> gateway_;
};

} // namespace ringmaster::test
