// CommInit while other clients take devices: where a listener's devices have addresses, the gateway chooses them.
#include "tests/gateway/served_cluster.hpp"

#include <caf/event_based_actor.hpp>

#include <atomic>
#include <set>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr auto three_places = "[lab]\naddress = 127.0.0.1:0\ndevices = 127.0.0.1:0, 127.0.0.1:0, 127.0.0.1:0\n"
                              "on-shortage = refuse\n";

/// Another client, which takes the first device that the gateway has chosen as free just before the coordinator gets
/// the gateway's CommInit.
struct other_client {
  int thefts = 0;          ///< From now on.
  bool gives_back = false; ///< When the coordinator has refused.
  std::shared_ptr<std::atomic<int>> tries = std::make_shared<std::atomic<int>>(0); ///< CommInits of the gateway.
};

served_cluster::front before_the_gateway(const other_client& how) {
  return [how](caf::actor_system& system, const coordinator_actor& coordinator) {
    auto behave = [how](caf::event_based_actor* self, const caf::actor& host) -> caf::behavior {
      self->set_default_handler([host](caf::scheduled_actor* me, caf::message_view& x) -> caf::result<caf::message> {
        return me->delegate(host, x.move_content_to_message());
      });
      auto left = std::make_shared<int>(how.thefts);
      return {[=](const gpu_sim::CommInitRequest& x) -> caf::result<gpu_sim::CommInitResponse> {
        ++*how.tries;
        if (*left == 0 || x.freedeviceids().empty()) {
          self->delegate(host, x);
          return caf::delegated<gpu_sim::CommInitResponse>{};
        }
        --*left;
        gpu_sim::CommInitRequest theft;
        theft.add_deviceids(x.freedeviceids(0));
        auto promise = self->make_response_promise<gpu_sim::CommInitResponse>();
        const auto limit = caf::infinite; // the client's call has one
        auto give_back = [=](uint64_t communicator, const gpu_sim::CommInitResponse& answer) {
          proto::CommDestroyRequest destroy;
          destroy.set_comm_id(communicator);
          self->request(host, limit, destroy).then([promise, answer](const proto::CommDestroyResponse&) mutable {
            promise.deliver(answer);
          });
        };
        self->request(host, limit, theft).then([=](const gpu_sim::CommInitResponse& taken) {
          self->request(host, limit, x).then([=, id = taken.commid()](const gpu_sim::CommInitResponse& answer) mutable {
            if (how.gives_back)
              give_back(id, answer);
            else
              promise.deliver(answer);
          });
        });
        return promise;
      }};
    };
    return caf::actor_cast<coordinator_actor>(system.spawn(behave, caf::actor_cast<caf::actor>(coordinator)));
  };
}

} // namespace

TEST_CASE("comm init: if another client takes a chosen device meanwhile, the gateway chooses again") {
  other_client other;
  other.thefts = 2;
  served_cluster served{three_places, 3, {"--device.memory-bytes=1MiB"}, before_the_gateway(other)};
  auto client = served.client_of();
  CHECK(client.comm_init(1).devices_size() == 1);
  CHECK(*other.tries == 3);
  const auto cluster = served.user().info();
  REQUIRE(cluster);
  for (auto& device : cluster->devices())
    CHECK(device.comm_ids_size() == 1);
  course::CommInitRequest more;
  more.set_numdevices(1);
  const auto refused = client.call<course::CommInitResponse>("GPUCoordinator/CommInit", more);
  CHECK(refused.status_code() == grpc::RESOURCE_EXHAUSTED);
  CHECK(refused.code == "too_few_devices");
}

TEST_CASE("comm init: the gateway chooses eight times, then the client gets an error") {
  other_client other;
  other.thefts = 100;
  other.gives_back = true;
  served_cluster served{three_places, 3, {"--device.memory-bytes=1MiB"}, before_the_gateway(other)};
  course::CommInitRequest request;
  request.set_numdevices(2);
  const auto refused = served.client_of().call<course::CommInitResponse>("GPUCoordinator/CommInit", request);
  CHECK(*other.tries == 8);
  CHECK(refused.status_code() == grpc::RESOURCE_EXHAUSTED);
  CHECK(refused.code == "too_few_devices");
  CHECK(
    refused.status.error_message().starts_with("devices were chosen 8 times, and each time one of them was taken by "
                                               "another client or had left: call CommInit again. The last: device"));
}

TEST_CASE("comm init: where devices are shared, only those that were free when they were chosen must still be free") {
  other_client other;
  other.thefts = 2;
  served_cluster served{"[lab]\naddress = 127.0.0.1:0\ndevices = 127.0.0.1:0, 127.0.0.1:0\n",
                        2,
                        {"--device.memory-bytes=1MiB"},
                        before_the_gateway(other)};
  CHECK(served.client_of().comm_init(2).devices_size() == 2);
  CHECK(*other.tries == 3);
}

TEST_CASE("comm init: clients of two listeners that want devices at the same time get different ones") {
  const std::string places = "devices = 127.0.0.1:0, 127.0.0.1:0, 127.0.0.1:0, 127.0.0.1:0\non-shortage = refuse\n";
  served_cluster served{"[a]\naddress = 127.0.0.1:0\n" + places + "[b]\naddress = 127.0.0.1:0\n" + places, 4};
  auto one = served.client_of(0), other = served.client_of(1);
  auto destroy = [](course_client& client, const course::CommInitResponse& made) {
    course::CommDestroyRequest request;
    request.set_commid(made.commid());
    CHECK(client.call<course::CommDestroyResponse>("GPUCoordinator/CommDestroy", request).ok());
  };
  constexpr int rounds = 30;
  for (int round = 0; round < rounds; ++round) {
    auto pending = std::async(std::launch::async, [&] { return one.comm_init(2); });
    const auto second = other.comm_init(2);
    const auto first = pending.get();
    const auto cluster = served.user().info();
    REQUIRE(cluster);
    for (auto& device : cluster->devices())
      CHECK(device.comm_ids_size() == 1);
    destroy(one, first);
    destroy(other, second);
  }
}
