#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

simulation_options without_devices() {
  simulation_options result;
  result.devices = 0;
  return result;
}

} // namespace

TEST_CASE("transfer: a device keeps the outcomes of that many transfers, the latest") {
  simulated_cluster cluster{without_devices()};
  simulated_client host{cluster};
  cluster.device_settings.transfers_max = 2;
  cluster.add_devices(2);
  auto comm = cluster.init(2);
  auto from = comm.devices(0), to = comm.devices(1);
  auto device = to.deviceid().value();
  std::vector<uint64_t> transfers;
  for (int i = 0; i < 5; ++i) {
    auto sent = host.begin_send(from.deviceid().value(), from.minmemaddr().value(), 8, 1);
    REQUIRE(sent.error() == "");
    transfers.push_back(sent.streamid().value());
    REQUIRE(host.begin_receive(device, transfers.back(), to.minmemaddr().value(), 8, 0).error() == "");
    CHECK(host.ended(device, transfers.back()).status() == gpu_sim::SUCCESS);
    CHECK(host.ended(from.deviceid().value(), transfers.back()).status() == gpu_sim::SUCCESS);
  }
  for (size_t i = 0; i < transfers.size(); ++i) {
    CAPTURE(i);
    auto status = host.status(device, transfers[i]);
    CHECK((i < 3 ? contains(status.error(), "has no stream") : status.status() == gpu_sim::SUCCESS));
  }
  auto& state = state_of<device_state>(device_of(cluster, device));
  CHECK(state.transfers.size() == 2);
  CHECK(state.peers.empty());
}
