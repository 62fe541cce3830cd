// Two listeners of one gateway, each with its own dialect.
#include "tests/gateway/served_cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr auto listeners = "[lab]\naddress = 127.0.0.1:0\n"
                           "[other]\naddress = 127.0.0.1:0\nstatus = READY, IN_PROGRESS, SUCCESS, FAILED\n"
                           "reduce-op = NIL, SUM, PROD, MIN, MAX\ncount = bytes\ndatatype = float32\n"
                           "window = 0x1000 64K\nfirst-status = READY\ndevice-ids = 0\n";

} // namespace

TEST_CASE("two dialects: clients of both at once get their own numbers, units and addresses") {
  served_cluster served{listeners, 4};
  std::thread one{[&] {
    auto client = served.client_of(0);
    const auto made = client.comm_init(2);
    for (auto& device : made.devices())
      client.copy_to_device(device.deviceid().value(), device.minmemaddr().value(), std::vector<double>{2, 3});
    course::AllReduceRingRequest request;
    request.set_commid(made.commid());
    request.set_count(2);
    request.set_op(course::PROD); // 1
    for (int i = 0; i < 20; ++i)
      CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", request).ok());
    CHECK(client.poll_status(made.commid(), 0) == 1);
  }};
  std::thread other{[&] {
    auto client = served.client_of(1);
    const auto made = client.comm_init(2);
    course::GetCommStatusRequest status;
    status.set_commid(made.commid());
    CHECK(client.call<course::GetCommStatusResponse>("GPUCoordinator/GetCommStatus", status).answer().status() == 0);
    for (auto& device : made.devices())
      client.copy_to_device(device.deviceid().value(), 0x1000, std::vector<float>{1, 2, 3});
    course::AllReduceRingRequest request;
    request.set_commid(made.commid());
    request.set_count(3 * sizeof(float));
    request.set_op(static_cast<course::ReduceOp>(1)); // SUM
    for (int i = 0; i < 20; ++i)
      CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", request).ok());
    CHECK(client.poll_status(made.commid(), 1) == 2);
    const auto scale = static_cast<float>(1 << 20);
    const auto sums = client.copy_to_host<float>(made.devices(1).deviceid().value(), 0x1000, 3);
    const std::vector<float> right{scale, 2 * scale, 3 * scale};
    CHECK_MESSAGE(sums == right, fmt::format("{}", fmt::join(sums, " ")));
    request.set_count(3);
    CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", request).status_code()
          == grpc::INVALID_ARGUMENT);
  }};
  one.join();
  other.join();
}

TEST_CASE("two dialects: a communicator belongs to the listener at which it was made") {
  served_cluster served{listeners, 4};
  const auto made = served.client_of(0).comm_init(1);
  course::GetCommStatusRequest status;
  status.set_commid(made.commid());
  CHECK(served.client_of(1).call<course::GetCommStatusResponse>("GPUCoordinator/GetCommStatus", status).status_code()
        == grpc::NOT_FOUND);
}
