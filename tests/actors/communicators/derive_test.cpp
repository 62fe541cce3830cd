#include "tests/support/rank_cluster.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using floats = std::vector<float>;

proto::CommDeriveResponse derive(rank_cluster& x, proto::CommDeriveRequest request) {
  request.set_comm_id(request.comm_id() == 0 ? x.comm.commid() : request.comm_id());
  return x.cluster.ask_coordinator<proto::CommDeriveResponse>(request);
}

proto::CommDeriveRequest split(const std::vector<int32_t>& colors, const std::vector<int64_t>& keys = {}) {
  proto::CommDeriveRequest result;
  result.mutable_split()->mutable_colors()->Add(colors.begin(), colors.end());
  result.mutable_split()->mutable_keys()->Add(keys.begin(), keys.end());
  return result;
}

proto::CommDeriveRequest shrink(const std::vector<uint32_t>& ranks) {
  proto::CommDeriveRequest result;
  result.mutable_shrink()->mutable_ranks()->Add(ranks.begin(), ranks.end());
  return result;
}

proto::CommDeriveRequest grow(uint32_t devices, const std::vector<uint64_t>& ids = {}) {
  proto::CommDeriveRequest result;
  result.mutable_grow()->set_devices(devices);
  result.mutable_grow()->mutable_device_ids()->Add(ids.begin(), ids.end());
  return result;
}

std::vector<uint64_t> devices_of(const gpu_sim::CommInitResponse& x) {
  std::vector<uint64_t> result;
  for (auto& device : x.devices())
    result.push_back(device.deviceid().value());
  return result;
}

using ids = std::vector<uint64_t>;

/// Enqueues the sum of one float a rank, from `in` to `out`, without waiting for the answer.
answer_ptr<proto::CollectiveResponse> begin_sum(rank_cluster& x, simulated_client& host,
                                                const gpu_sim::CommInitResponse& comm, uint64_t in, uint64_t out) {
  proto::CollectiveRequest request;
  request.set_comm_id(comm.commid());
  request.mutable_collective()->set_algorithm("ring");
  request.mutable_collective()->set_count(1);
  request.mutable_collective()->set_datatype(proto::FLOAT32);
  for (auto& device : comm.devices()) {
    request.add_inputs(device.minmemaddr().value() + in * sizeof(float));
    request.add_outputs(device.minmemaddr().value() + out * sizeof(float));
  }
  return host.ask<proto::CollectiveResponse>(x.cluster.host, request);
}

template <class Request, class Response>
void group(rank_cluster& x, simulated_client& host, uint64_t id) {
  Request request;
  request.set_commid(id);
  CHECK(host.wait_for(host.ask<Response>(x.cluster.host, request)).error() == "");
}

bool destroy(rank_cluster& x, uint64_t id) {
  proto::CommDestroyRequest request;
  request.set_comm_id(id);
  return x.cluster.ask_coordinator<proto::CommDestroyResponse>(request).success();
}

} // namespace

TEST_CASE("derive: split by colour and key, as MPI_Comm_split orders them") {
  rank_cluster x{with_devices(5), 5};
  auto made = derive(x, split({7, 2, 7, -1, 7}, {3, 0, 1, 0, 1}));
  REQUIRE(made.error() == "");
  REQUIRE(made.parts_size() == 2);
  CHECK(made.parts(0).color() == 2);
  CHECK(devices_of(made.parts(0).comm()) == ids{2});
  CHECK(devices_of(made.parts(1).comm()) == ids{3, 5, 1}); // equal keys: the old order
  CHECK(contains(derive(x, split({1, 2})).error(), "split: 2 colours for 5 ranks"));
  CHECK(contains(derive(x, split({}, {1})).error(), "split: 1 keys for 5 ranks"));
  CHECK(devices_of(derive(x, split({})).parts(0).comm()) == ids{1, 2, 3, 4, 5});
}

TEST_CASE("derive: a refusal is in the journal") {
  auto opts = with_devices(4);
  opts.journaled = true;
  rank_cluster x{opts, 4};
  CHECK(derive(x, grow(1)).error() != "");
  CHECK(x.cluster.init(9).error() != "");
  auto records = x.cluster.history();
  auto found = std::find_if(records.begin(), records.end(), [](auto& y) { return y.has_communicator_refused(); });
  REQUIRE(found != records.end());
  CHECK(found->communicator_refused().call() == "CommDerive");
  CHECK(found->communicator_refused().parent_id() == x.comm.commid());
  CHECK(contains(found->communicator_refused().reason(), "grow asks for 1 devices"));
  found = std::find_if(found + 1, records.end(), [](auto& y) { return y.has_communicator_refused(); });
  REQUIRE(found != records.end());
  CHECK(found->communicator_refused().call() == "CommInit");
  CHECK(found->communicator_refused().devices() == 9);
}

TEST_CASE("derive: ranks that wait for each other in two communicators hear where the other one waits") {
  rank_cluster x{with_devices(2), 2};
  auto made = derive(x, split({}));
  REQUIRE(made.error() == "");
  auto part = x.handles_of(made.parts(0).comm());
  using namespace std::chrono_literals;
  auto errors = x.ended({x.handles[0].barrier({.timeout = 2s}), part[1].barrier({.timeout = 2s})});
  const auto whole_id = x.comm.commid(), part_id = made.parts(0).comm().commid();
  CHECK_MESSAGE(contains(errors[0], fmt::format("communicator {}: rank 1 (device 0x2) has not called barrier #1, and "
                                                "waits in communicator {} for barrier #1;",
                                                whole_id, part_id)),
                errors[0]);
  CHECK_MESSAGE(contains(errors[1], fmt::format("communicator {}: rank 0 (device 0x1) has not called barrier #1, and "
                                                "waits in communicator {} for barrier #1;",
                                                part_id, whole_id)),
                errors[1]);
}

TEST_CASE("derive: shrink and grow make new communicators, and the old one stays") {
  rank_cluster x{with_devices(6), 4};
  auto fewer = derive(x, shrink({0, 2}));
  CHECK(devices_of(fewer.parts(0).comm()) == ids{2, 4});
  CHECK(contains(derive(x, shrink({4})).error(), "there is no rank 4; the communicator has ranks 0 to 3"));
  CHECK(contains(derive(x, shrink({0, 1, 2, 3})).error(), "no rank would be left"));
  auto more = derive(x, grow(2));
  CHECK(devices_of(more.parts(0).comm()) == ids{1, 2, 3, 4, 5, 6});
  CHECK(contains(derive(x, grow(1)).error(), "grow asks for 1 devices, but 0 are free"));
  CHECK(contains(derive(x, grow(0, {3})).error(), "device 0x3 would be rank 2 and rank 4 of one communicator"));
  CHECK(contains(derive(x, grow(0, {77})).error(), "there is no device 0x4d"));
  CHECK(destroy(x, more.parts(0).comm().commid()));
  CHECK(devices_of(derive(x, grow(0, {6})).parts(0).comm()) == ids{1, 2, 3, 4, 6});
  CHECK(x.all_well({x.handles[0].barrier(), x.handles[1].barrier(), x.handles[2].barrier(), x.handles[3].barrier()}));
  proto::CommDeriveRequest nobody;
  nobody.set_comm_id(99);
  CHECK(contains(derive(x, nobody).error(), "there is no communicator 99"));
}

TEST_CASE("derive: a communicator of named devices may share them") {
  rank_cluster x{with_devices(3), 2};
  gpu_sim::CommInitRequest request;
  request.set_defaultpolicy(true);
  for (uint64_t id : {3, 1})
    request.add_deviceids(id);
  auto made = x.cluster.ask_coordinator<gpu_sim::CommInitResponse>(request);
  CHECK(made.error() == "");
  CHECK(devices_of(made) == ids{3, 1});
  request.set_numdevices(3);
  CHECK(contains(x.cluster.ask_coordinator<gpu_sim::CommInitResponse>(request).error(),
                 "asks for 3 devices and names 2"));
  auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  CHECK(ids{info.devices(0).comm_ids().begin(), info.devices(0).comm_ids().end()} == ids{1, 2});
  CHECK(destroy(x, 2));
  info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  CHECK(info.devices(2).comm_ids().empty());
  CHECK(ids{info.devices(0).comm_ids().begin(), info.devices(0).comm_ids().end()} == ids{1});
}

TEST_CASE("derive: operations of communicators that share devices never wait for each other in a circle") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    rank_cluster x{with_devices(4, seed), 4};
    simulated_client first{x.cluster}, second{x.cluster};
    for (uint32_t rank = 0; rank < 4; ++rank)
      x.fill(rank, 0, {static_cast<float>(1 << rank)});
    auto same = derive(x, split({})).parts(0).comm();
    auto halves = derive(x, split({0, 1, 1, 0}));
    std::vector<answer_ptr<proto::CollectiveResponse>> calls;
    for (uint64_t round = 0; round < 4; ++round) {
      calls.push_back(begin_sum(x, first, x.comm, 0, 8 + round));
      calls.push_back(begin_sum(x, second, same, 0, 16 + round));
      for (int part = 0; part < 2; ++part)
        calls.push_back(begin_sum(x, part == 0 ? first : second, halves.parts(part).comm(), 0, 24 + round));
    }
    for (auto& call : calls)
      CHECK(first.wait_for(call).error() == "");
    for (auto id : {x.comm.commid(), same.commid(), halves.parts(0).comm().commid(), halves.parts(1).comm().commid()})
      CHECK(x.cluster.wait(id).error() == "");
    for (uint32_t rank = 0; rank < 4; ++rank) {
      CHECK(x.read(rank, 8, 4) == floats(4, 15));
      CHECK(x.read(rank, 16, 4) == floats(4, 15));
      CHECK(x.read(rank, 24, 4) == floats(4, rank == 0 || rank == 3 ? 9 : 6));
    }
  }
}

TEST_CASE("derive: a lost device leaves all its communicators") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    rank_cluster x{with_devices(4, seed), 4};
    simulated_client host{x.cluster};
    for (uint32_t rank = 0; rank < 4; ++rank)
      x.fill(rank, 0, {static_cast<float>(1 << rank)});
    auto same = derive(x, split({})).parts(0).comm();
    for (auto id : {x.comm.commid(), same.commid()})
      group<gpu_sim::GroupStartRequest, gpu_sim::GroupStartResponse>(x, host, id);
    for (auto& call : {begin_sum(x, host, x.comm, 0, 8), begin_sum(x, host, same, 0, 9)})
      CHECK(host.wait_for(call).error() == "");
    proto::FaultRequest kill;
    kill.set_at_step(true);
    kill.set_step(1);
    x.cluster.inject(x.device(2), kill);
    for (auto id : {x.comm.commid(), same.commid()})
      group<gpu_sim::GroupEndRequest, gpu_sim::GroupEndResponse>(x, host, id);
    CHECK(x.cluster.wait(x.comm.commid()).error() == "");
    CHECK(x.cluster.wait(same.commid()).error() == "");
    CHECK(x.read(0, 8, 2) == floats{11, 11});
    auto after = derive(x, split({}));
    CHECK(devices_of(after.parts(0).comm()) == ids{1, 2, 4});
  }
}

TEST_CASE("derive: hundreds of communicators are alive at once, and all of them work") {
  rank_cluster x{with_devices(4), 4};
  simulated_client host{x.cluster};
  constexpr size_t many = 300;
  for (uint32_t rank = 0; rank < 4; ++rank)
    x.fill(rank, 0, {static_cast<float>(1 << rank)});
  std::vector<gpu_sim::CommInitResponse> all;
  for (size_t i = 0; i < many; ++i)
    all.push_back(derive(x, i % 2 == 0 ? split({}) : shrink({3})).parts(0).comm());
  std::vector<answer_ptr<proto::CollectiveResponse>> calls;
  for (size_t i = 0; i < many; ++i)
    calls.push_back(begin_sum(x, host, all[i], 0, 8 + i));
  for (auto& call : calls)
    CHECK(host.wait_for(call).error() == "");
  for (auto& comm : all)
    CHECK(x.cluster.wait(comm.commid()).error() == "");
  auto sums = x.read(0, 8, many);
  for (size_t i = 0; i < many; ++i)
    CHECK(sums[i] == (i % 2 == 0 ? 15 : 7));
  for (auto& comm : all)
    CHECK(destroy(x, comm.commid()));
  auto info = x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  CHECK(ids{info.devices(0).comm_ids().begin(), info.devices(0).comm_ids().end()} == ids{1});
}

TEST_CASE("derive: too many communicators at once are refused whole") {
  rank_cluster x{with_devices(4), 4};
  proto::CommDeriveResponse last;
  size_t made = 1;
  while (made < 4095 && (last = derive(x, split({}))).success())
    ++made;
  CHECK(made == 4095);
  CHECK(contains(derive(x, split({0, 0, 1, 1})).error(),
                 "4095 communicators are alive, 2 more would be over the limit of 4096"));
  CHECK(derive(x, split({})).success());
}
