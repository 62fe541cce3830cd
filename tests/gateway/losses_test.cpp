// Devices that die while clients call and poll.
#include "tests/gateway/served_cluster.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr size_t losses_count = 1000;

/// Calls GroupStart, AllReduceRing and GroupEnd with SUM, by the ranks and addresses of CommInit.
void all_reduce_in_group(course_client& client, const course::CommInitResponse& made) {
  course::GroupStartRequest start;
  start.set_commid(made.commid());
  course::GroupEndRequest end;
  end.set_commid(made.commid());
  course::AllReduceRingRequest asked;
  asked.set_commid(made.commid());
  asked.set_count(losses_count);
  for (int rank = 0; rank < made.devices_size(); ++rank)
    (*asked.mutable_memaddrs())[static_cast<uint32_t>(rank)] = made.devices(rank).minmemaddr();
  CHECK(client.call<course::GroupStartResponse>("GPUCoordinator/GroupStart", start).ok());
  CHECK(client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", asked).ok());
  CHECK(client.call<course::GroupEndResponse>("GPUCoordinator/GroupEnd", end).ok());
}

/// AllReduceRing alone, at the lowest addresses.
course_client::outcome<course::AllReduceRingResponse> all_reduce(course_client& client,
                                                                 const course::CommInitResponse& made) {
  course::AllReduceRingRequest asked;
  asked.set_commid(made.commid());
  asked.set_count(losses_count);
  return client.call<course::AllReduceRingResponse>("GPUCoordinator/AllReduceRing", asked);
}

/// Gives rank r the value 10^r.
void copy_in(course_client& client, const course::CommInitResponse& made) {
  double value = 1;
  for (auto& device : made.devices()) {
    client.copy_to_device(device.deviceid().value(), device.minmemaddr().value(),
                          std::vector<double>(losses_count, value));
    value *= 10;
  }
}

std::vector<double> copy_out(course_client& client, const course::CommInitResponse& made, int rank) {
  auto& device = made.devices(rank);
  return client.copy_to_host<double>(device.deviceid().value(), device.minmemaddr().value(), losses_count);
}

std::string lab_with(const std::string& line) {
  return "[lab]\naddress = 127.0.0.1:0\n" + line + "\n";
}

} // namespace

TEST_CASE("losses: under shrink the others sum their values while the client polls, and sum again") {
  served_cluster served{lab_with("on-loss = shrink")};
  auto client = served.client_of();
  const auto made = client.comm_init(4);
  copy_in(client, made);
  served.kill_in_round(made.devices(1).deviceid().value(), 2);
  all_reduce_in_group(client, made);
  CHECK(client.poll_status(made.commid()) == course::SUCCESS);
  for (int rank : {0, 2, 3})
    CHECK(copy_out(client, made, rank) == std::vector<double>(losses_count, 1101));
  const auto lost = client.call<course::MemcpyResponse>(
    "GPUCoordinator/Memcpy",
    course_client::to_host(made.devices(1).deviceid().value(), made.devices(1).minmemaddr().value(), 8));
  CHECK(lost.status_code() == grpc::NOT_FOUND);
  all_reduce_in_group(client, made); // by the ranks of CommInit, with the address of the lost one
  CHECK(client.poll_status(made.commid()) == course::SUCCESS);
  CHECK(copy_out(client, made, 3) == std::vector<double>(losses_count, 3303));
}

TEST_CASE("losses: under replace a spare has the lost device's rank, id and addresses") {
  served_cluster served{lab_with("on-loss = replace"), 5};
  auto client = served.client_of();
  const auto made = client.comm_init(4);
  copy_in(client, made);
  served.kill_in_round(made.devices(2).deviceid().value(), 1);
  all_reduce_in_group(client, made);
  CHECK(client.poll_status(made.commid()) == course::SUCCESS);
  for (int rank = 0; rank < 4; ++rank)
    CHECK(copy_out(client, made, rank) == std::vector<double>(losses_count, 1111));
  all_reduce_in_group(client, made);
  CHECK(client.poll_status(made.commid()) == course::SUCCESS);
  CHECK(copy_out(client, made, 2) == std::vector<double>(losses_count, 4444));
}

TEST_CASE("losses: under abort the status is FAILED, and stays so") {
  served_cluster served{lab_with("on-loss = abort")};
  auto client = served.client_of();
  const auto made = client.comm_init(4);
  copy_in(client, made);
  served.kill_in_round(made.devices(0).deviceid().value(), 1);
  all_reduce_in_group(client, made);
  CHECK(client.poll_status(made.commid()) == course::FAILED);
  CHECK(client.poll_status(made.commid()) == course::FAILED);
}

TEST_CASE("losses: outside a group AllReduceRing answers after the others have summed again") {
  served_cluster served{lab_with("on-loss = shrink")};
  auto client = served.client_of();
  const auto made = client.comm_init(3);
  copy_in(client, made);
  served.kill_in_round(made.devices(0).deviceid().value(), 1);
  CHECK(all_reduce(client, made).answer().success());
  CHECK(copy_out(client, made, 1) == std::vector<double>(losses_count, 110));
}

TEST_CASE("losses: a device that dies between two calls is noticed in the second") {
  served_cluster served{lab_with("on-loss = shrink")};
  auto client = served.client_of();
  const auto made = client.comm_init(3);
  copy_in(client, made);
  served.kill(made.devices(2).deviceid().value());
  auto user = served.user();
  for (const auto end = std::chrono::steady_clock::now() + course_client::usual_limit;
       user.members(communicator_id{made.commid()})->devices_size() == 3 && std::chrono::steady_clock::now() < end;) {
  }
  CHECK(all_reduce(client, made).answer().success());
  CHECK(copy_out(client, made, 0) == std::vector<double>(losses_count, 11));
}

TEST_CASE("losses: a failed operation outside a group is an error with our code") {
  served_cluster served{lab_with("on-loss = abort")};
  auto client = served.client_of();
  const auto made = client.comm_init(3);
  copy_in(client, made);
  served.kill_in_round(made.devices(1).deviceid().value(), 1);
  const auto failed = all_reduce(client, made);
  CHECK((failed.status_code() == grpc::UNAVAILABLE || failed.status_code() == grpc::ABORTED));
  CHECK(failed.code != "");
  CHECK(client.poll_status(made.commid()) == course::FAILED);
}
