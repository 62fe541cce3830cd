// The course protocol as a client of the lab's form sees it.
#include "tests/gateway/served_cluster.hpp"

#include <numeric>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

course::AllReduceRingRequest all_reduce_of(const course::CommInitResponse& made, uint64_t count, int op = 0) {
  course::AllReduceRingRequest result;
  result.set_commid(made.commid());
  result.set_count(count);
  result.set_op(static_cast<course::ReduceOp>(op));
  for (int rank = 0; rank < made.devices_size(); ++rank)
    (*result.mutable_memaddrs())[static_cast<uint32_t>(rank)] = made.devices(rank).minmemaddr();
  return result;
}

template <class Request>
Request of_communicator(uint64_t id) {
  Request result;
  result.set_commid(id);
  return result;
}

/// Copies each rank's numbers to its lowest address.
void copy_in(course_client& client, const course::CommInitResponse& made, const std::vector<std::vector<double>>& all) {
  for (int rank = 0; rank < made.devices_size(); ++rank)
    client.copy_to_device(made.devices(rank).deviceid().value(), made.devices(rank).minmemaddr().value(),
                          all[static_cast<size_t>(rank)]);
}

std::vector<double> copy_out(course_client& client, const course::CommInitResponse& made, int rank, size_t count) {
  return client.copy_to_host<double>(made.devices(rank).deviceid().value(), made.devices(rank).minmemaddr().value(),
                                     count);
}

/// Whether the communicator is destroyed.
bool ends_within(ringmaster::client& user, uint64_t communicator, std::chrono::seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  auto found = user.members(communicator_id{communicator});
  while (found && std::chrono::steady_clock::now() < until)
    found = user.members(communicator_id{communicator});
  return !found && code_of(found.error()) == errc::unknown_communicator;
}

const std::vector<double> one_to_ten{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

} // namespace

TEST_CASE("course calls: the lab's sequence of calls sums the vectors of ten devices") {
  served_cluster served{lab_listener, 10};
  auto client = served.client_of();
  const auto made = client.comm_init(10);
  CHECK(made.success());
  REQUIRE(made.devices_size() == 10);
  copy_in(client, made, std::vector<std::vector<double>>(10, one_to_ten));
  CHECK(client
          .call<course::GroupStartResponse>("GPUCoordinator/GroupStart",
                                            of_communicator<course::GroupStartRequest>(made.commid()))
          .answer()
          .success());
  CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", all_reduce_of(made, 10))
          .answer()
          .success());
  CHECK(copy_out(client, made, 0, 10) == one_to_ten); // deferred to the end of the group
  CHECK(client
          .call<course::GroupEndResponse>("GPUCoordinator/GroupEnd",
                                          of_communicator<course::GroupEndRequest>(made.commid()))
          .answer()
          .success());
  CHECK(client.poll_status(made.commid()) == course::SUCCESS);
  for (int rank = 0; rank < 10; ++rank)
    CHECK(copy_out(client, made, rank, 10) == std::vector<double>{10, 20, 30, 40, 50, 60, 70, 80, 90, 100});
}

TEST_CASE("course calls: outside a group AllReduceRing answers when it has ended, without addresses at the lowest") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(2);
  copy_in(client, made, {{1, 2}, {3, 4}});
  auto request = all_reduce_of(made, 2, course::PROD);
  request.clear_memaddrs();
  CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", request).answer().success());
  CHECK(copy_out(client, made, 0, 2) == std::vector<double>{3, 8});
  CHECK(copy_out(client, made, 1, 2) == std::vector<double>{3, 8});
}

TEST_CASE("course calls: MIN and MAX, at other addresses for each rank") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(3);
  auto request = all_reduce_of(made, 2, course::MIN);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    auto& address = (*request.mutable_memaddrs())[rank];
    address.set_value(address.value() + 64 * rank);
    client.copy_to_device(made.devices(static_cast<int>(rank)).deviceid().value(), address.value(),
                          std::vector<double>{rank + 1.0, 10.0 - rank});
  }
  CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", request).ok());
  CHECK(client.copy_to_host<double>(made.devices(2).deviceid().value(), request.memaddrs().at(2).value(), 2)
        == std::vector<double>{1, 8});
}

TEST_CASE("course calls: one device alone, and no elements") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(1);
  copy_in(client, made, {{1, 2}});
  CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", all_reduce_of(made, 2)).ok());
  CHECK(client.poll_status(made.commid()) == course::SUCCESS);
  CHECK(copy_out(client, made, 0, 2) == std::vector<double>{1, 2});
}

TEST_CASE("course calls: naive all-reduces, by either of their names and in both forms") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(2);
  copy_in(client, made, {{1, 2}, {3, 4}});
  CHECK(
    client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduce", all_reduce_of(made, 2)).answer().success());
  CHECK(copy_out(client, made, 1, 2) == std::vector<double>{4, 6});
  course::NaiveAllReduceRequest request;
  request.set_commid(made.commid());
  request.set_count(16);                             // bytes
  request.set_op(static_cast<course::ReduceOp>(10)); // a latency
  const auto naive = client.call<course::NaiveAllReduceResponse>("GPUCoordinator/NaiveAllReduce", request).answer();
  CHECK(naive.success());
  CHECK(naive.totaldatatransferred() == 32);
  CHECK(copy_out(client, made, 0, 2) == std::vector<double>{8, 12});
}

TEST_CASE("course calls: CommDestroy frees the devices, CommFinalize may come before it") {
  served_cluster served{"[lab]\naddress = 127.0.0.1:0\non-shortage = refuse\n"};
  auto client = served.client_of();
  auto destroy = [&](uint64_t id) {
    return client.call<course::CommDestroyResponse>("GPUCoordinator/CommDestroy",
                                                    of_communicator<course::CommDestroyRequest>(id));
  };
  const auto first = client.comm_init(4);
  course::CommInitRequest more;
  more.set_numdevices(1);
  const auto refused = client.call<course::CommInitResponse>("GPUCoordinator/CommInit", more);
  CHECK(refused.status_code() == grpc::RESOURCE_EXHAUSTED);
  CHECK(refused.code == "too_few_devices");
  CHECK(destroy(first.commid()).answer().success());
  CHECK(destroy(first.commid()).status_code() == grpc::NOT_FOUND);
  const auto second = client.comm_init(4);
  CHECK(client
          .call<course::CommFinalizeResponse>("GPUCoordinator/CommFinalize",
                                              of_communicator<course::CommFinalizeRequest>(second.commid()))
          .answer()
          .success());
  CHECK(destroy(second.commid()).answer().success());
  CHECK(client.comm_init(4).success());
}

TEST_CASE("course calls: where too few devices are free, communicators share those that are longest unused") {
  served_cluster served;
  auto client = served.client_of();
  const auto first = client.comm_init(3), second = client.comm_init(3);
  CHECK(second.devices_size() == 3);
  CHECK(second.commid() != first.commid());
  course::CommInitRequest more;
  more.set_numdevices(5);
  CHECK(client.call<course::CommInitResponse>("GPUCoordinator/CommInit", more).status_code()
        == grpc::RESOURCE_EXHAUSTED);
}

TEST_CASE("course calls: a communicator that no client uses is destroyed") {
  served_cluster served{"[lab]\naddress = 127.0.0.1:0\non-shortage = refuse\nidle-limit = 200ms\n"};
  auto client = served.client_of();
  const auto made = client.comm_init(4);
  auto user = served.user();
  CHECK(ends_within(user, made.commid(), std::chrono::seconds{10}));
  CHECK(client
          .call<course::GetCommStatusResponse>("GPUCoordinator/GetCommStatus",
                                               of_communicator<course::GetCommStatusRequest>(made.commid()))
          .status_code()
        == grpc::NOT_FOUND);
}

TEST_CASE("course calls: a removed device takes no part, and the others keep their ranks") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(3);
  copy_in(client, made, {{1}, {10}, {100}});
  course::CommRemoveDeviceRequest remove;
  remove.set_commid(made.commid());
  remove.mutable_rank()->set_value(1);
  CHECK(client.call<course::CommRemoveDeviceResponse>("GPUCoordinator/CommRemoveDevice", remove).answer().success());
  CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", all_reduce_of(made, 1)).ok());
  CHECK(copy_out(client, made, 0, 1) == std::vector<double>{101});
  CHECK(copy_out(client, made, 1, 1) == std::vector<double>{10});
  CHECK(copy_out(client, made, 2, 1) == std::vector<double>{101});
  const auto again = client.call<course::CommRemoveDeviceResponse>("GPUCoordinator/CommRemoveDevice", remove);
  CHECK(again.status_code() == grpc::UNAVAILABLE);
}

TEST_CASE("course calls: errors are status codes, with our code in the trailing metadata") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(2);
  const auto device = made.devices(0).deviceid().value(), low = made.devices(0).minmemaddr().value();
  auto check = [&](const std::string& method, const auto& request, grpc::StatusCode status, const char* code) {
    const auto result = client.call<course::GroupStartResponse>(method, request);
    CHECK_MESSAGE(result.status_code() == status, method << ": " << result.status.error_message());
    CHECK(result.code == code);
    CHECK(result.status.error_message() != "");
  };
  const auto none = of_communicator<course::GroupStartRequest>(999);
  for (auto method :
       {"GroupStart", "GroupEnd", "GetCommStatus", "CommDestroy", "CommFinalize", "AllReduceRing", "CommRemoveDevice"})
    check(std::string{"GPUCoordinator/"} + method, none, grpc::NOT_FOUND, "unknown_communicator");
  const auto known = of_communicator<course::GroupStartRequest>(made.commid());
  check("GPUCoordinator/GroupEnd", known, grpc::FAILED_PRECONDITION, "group_misuse");
  CHECK(client.call<course::GroupStartResponse>("GPUCoordinator/GroupStart", known).ok());
  check("GPUCoordinator/GroupStart", known, grpc::FAILED_PRECONDITION, "group_misuse");
  CHECK(client.call<course::GroupEndResponse>("GPUCoordinator/GroupEnd", known).ok());
  check("GPUCoordinator/CommInit", course::CommInitRequest{}, grpc::INVALID_ARGUMENT, "invalid_argument");
  check("GPUCoordinator/Memcpy", course::MemcpyRequest{}, grpc::INVALID_ARGUMENT, "invalid_argument");
  check("GPUCoordinator/Memcpy", course_client::to_host(999, 0, 8), grpc::NOT_FOUND, "unknown_device");
  check("GPUCoordinator/Memcpy", course_client::to_host(device, low - 8, 16), grpc::OUT_OF_RANGE, "out_of_range");
  check("GPUCoordinator/Memcpy", course_client::to_host(device, low, 3 << 20), grpc::OUT_OF_RANGE, "out_of_range");
  check("GPUCoordinator/Memcpy", course_client::to_host(device, low, uint64_t{1} << 40), grpc::INVALID_ARGUMENT,
        "too_large");
  check("GPUCoordinator/Memcpy", course_client::to_device(device, low - 1, "ab"), grpc::OUT_OF_RANGE, "out_of_range");
  check("GPUCoordinator/AllReduceRing", all_reduce_of(made, 1, 17), grpc::INVALID_ARGUMENT, "invalid_argument");
  check("GPUCoordinator/AllReduceRing", all_reduce_of(made, 1 << 30), grpc::OUT_OF_RANGE, "out_of_range");
  auto beyond = all_reduce_of(made, 1);
  (*beyond.mutable_memaddrs())[2].set_value(low);
  check("GPUCoordinator/AllReduceRing", beyond, grpc::INVALID_ARGUMENT, "invalid_argument");
}

TEST_CASE("course calls: a copy of no bytes succeeds") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(1);
  const auto device = made.devices(0).deviceid().value(), low = made.devices(0).minmemaddr().value();
  client.copy_to_device(device, low, std::vector<double>{});
  CHECK(client.copy_to_host<double>(device, low, 0).empty());
}

TEST_CASE("course calls: a copy larger than a piece arrives in order") {
  served_cluster served{lab_listener, 1, {"--device.memory-bytes=8MiB"}};
  auto client = served.client_of();
  const auto made = client.comm_init(1);
  const auto& device = made.devices(0);
  std::vector<uint32_t> values((device.maxmemaddr().value() - device.minmemaddr().value()) / sizeof(uint32_t));
  std::iota(values.begin(), values.end(), 1u);
  client.copy_to_device(device.deviceid().value(), device.minmemaddr().value(), values);
  CHECK(client.copy_to_host<uint32_t>(device.deviceid().value(), device.minmemaddr().value(), values.size()) == values);
}

TEST_CASE("course calls: unknown methods are UNIMPLEMENTED, further known ones are served") {
  served_cluster served;
  auto client = served.client_of();
  const auto heartbeat = client.call<course::HeartbeatResponse>("GPUCoordinator/Heartbeat", course::HeartbeatRequest{});
  CHECK(heartbeat.answer().success());
  CHECK(client.call<course::HeartbeatResponse>("GPUCoordinator/Barrier", course::HeartbeatRequest{}).status_code()
        == grpc::UNIMPLEMENTED);
  CHECK(client.call<course::HeartbeatResponse>("Other/Heartbeat", course::HeartbeatRequest{}).status_code()
        == grpc::UNIMPLEMENTED);
}

TEST_CASE("course calls: the client's deadline is the limit of the request") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(2);
  served.hang_in_collective(made.devices(1).deviceid().value(), std::chrono::seconds{2});
  const auto result = client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", all_reduce_of(made, 1),
                                                                 std::chrono::milliseconds{200});
  CHECK(result.status_code() == grpc::DEADLINE_EXCEEDED);
}

TEST_CASE("course calls: when the gateway stops, calls under way are answered") {
  served_cluster served;
  auto client = served.client_of();
  const auto made = client.comm_init(2);
  served.hang_in_collective(made.devices(1).deviceid().value(), std::chrono::seconds{3});
  auto pending = std::async(std::launch::async, [&] {
    return client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", all_reduce_of(made, 1));
  });
  auto user = served.user();
  for (const auto end = std::chrono::steady_clock::now() + course_client::usual_limit;
       user.members(communicator_id{made.commid()})->operationsinflight() == 0
       && std::chrono::steady_clock::now() < end;) {
  }
  served.stop_gateway();
  CHECK(pending.get().status_code() == grpc::UNAVAILABLE);
  CHECK(ends_within(user, made.commid(), std::chrono::seconds{10}));
}
