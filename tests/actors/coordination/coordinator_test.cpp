#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

uint64_t join(simulated_cluster& cluster, uint64_t wanted) {
  proto::DeviceJoinRequest request;
  request.set_wanted_id(wanted);
  return cluster.ask_coordinator<proto::DeviceJoinResponse>(request).device_id();
}

proto::ClusterInfoRequest at_least(uint32_t devices, caf::timespan limit) {
  proto::ClusterInfoRequest request;
  request.set_min_devices(devices);
  request.set_timeout_ns(static_cast<uint64_t>(limit.count()));
  return request;
}

} // namespace

TEST_CASE("coordinator: gives every id once, the one that is wanted where it can") {
  simulated_cluster cluster{{}};
  CHECK(join(cluster, 0) == 5);
  CHECK(join(cluster, 3) == 6); // a living device's
  CHECK(join(cluster, 20) == 20);
  CHECK(join(cluster, 20) == 21); // the first is not ready yet
  CHECK(join(cluster, 10) == 10);
  CHECK(join(cluster, 10) == 22);
  caf::anon_send(device_of(cluster, 2), proto::FaultRequest{});
  cluster.run_until([&] { return state_of<coordinator_state>(cluster.host).devices.find(device_id{2}) == nullptr; });
  CHECK(join(cluster, 2) == 23); // a dead device's
}

TEST_CASE("coordinator: answers who is there when enough are, or when the time is over") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  auto at_once = cluster.ask_coordinator<proto::ClusterInfo>(at_least(4, 1s));
  CHECK(at_once.devices_size() == 4);
  auto began = time_of(cluster);
  CHECK(cluster.ask_coordinator<proto::ClusterInfo>(at_least(5, 2s)).devices_size() == 4);
  CHECK(time_of(cluster) - began >= 2s);
  auto pending = host.ask<proto::ClusterInfo>(cluster.host, at_least(6, 3600s));
  cluster.add_devices(2);
  CHECK(host.wait_for(pending).devices_size() == 6);
  auto comm = cluster.init(2);
  auto info = cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  REQUIRE(info.devices(0).comm_ids_size() == 1);
  CHECK(info.devices(0).comm_ids(0) == comm.commid());
  CHECK(info.devices(5).comm_ids_size() == 0);
}

TEST_CASE("coordinator: names as many free devices as are wanted, and nothing else") {
  simulated_cluster cluster{{}};
  auto comm = cluster.init(1);
  auto free = [&](uint32_t most) {
    proto::ClusterInfoRequest request;
    request.set_free_max(most);
    return cluster.ask_coordinator<proto::ClusterInfo>(request);
  };
  CHECK(free(2).devices_size() == 2);
  const auto all = free(9);
  CHECK(all.devices_size() == 3);
  for (auto& each : all.devices()) {
    CHECK(each.comm_ids_size() == 0);
    CHECK(each.metadata().deviceid().value() != comm.devices(0).deviceid().value());
  }
  CHECK(all.nodes_size() == 0);
}

TEST_CASE("coordinator: bytes travel within the message as the course has it, or beside it") {
  simulation_options how;
  how.policy = proto::REPLACE; // else no one will want the host's copies
  simulated_cluster cluster{how};
  simulated_client host{cluster};
  auto comm = cluster.init(2);
  auto address = comm.devices(0).minmemaddr().value();
  gpu_sim::MemcpyRequest in, out;
  in.mutable_hosttodevice()->mutable_dstdeviceid()->set_value(1);
  in.mutable_hosttodevice()->mutable_dstmemaddr()->set_value(address);
  in.mutable_hosttodevice()->set_hostsrcdata("within");
  out.mutable_devicetohost()->mutable_srcdeviceid()->set_value(1);
  out.mutable_devicetohost()->mutable_srcmemaddr()->set_value(address);
  out.mutable_devicetohost()->set_numbytes(6);
  CHECK(cluster.ask_coordinator<gpu_sim::MemcpyResponse>(in).hosttodevice().success());
  CHECK(cluster.ask_coordinator<gpu_sim::MemcpyResponse>(out).devicetohost().dstdata() == "within");
  auto& copies = state_of<coordinator_state>(cluster.host).copies;
  REQUIRE(copies.find(device_id{1}, address, 6));
  // The two-part message may carry them within, too: they replace what was known.
  in.mutable_hosttodevice()->set_hostsrcdata("beside");
  CHECK(host.wait_for(host.ask<gpu_sim::MemcpyResponse, byte_block>(cluster.host, in, byte_block{})).error() == "");
  CHECK(cluster.ask_coordinator<gpu_sim::MemcpyResponse>(out).devicetohost().dstdata() == "beside");
  auto known = copies.find(device_id{1}, address, 6);
  REQUIRE(known);
  CHECK(text_of(known->front().block.part(known->front().offset, 6)) == "beside");
  CHECK(contains(cluster.ask_coordinator<gpu_sim::MemcpyResponse>(gpu_sim::MemcpyRequest{}).error(), "neither"));
  in.mutable_hosttodevice()->mutable_dstdeviceid()->set_value(99);
  CHECK(contains(cluster.ask_coordinator<gpu_sim::MemcpyResponse>(in).error(), "there is no device 0x63"));
}

TEST_CASE("coordinator: what the host knows of a device's bytes ends with anything that may change them") {
  simulation_options how;
  how.policy = proto::REPLACE; // else no one will want the host's copies
  simulated_cluster cluster{how};
  simulated_client host{cluster};
  auto comm = cluster.init(2);
  auto address = comm.devices(0).minmemaddr().value();
  auto& copies = state_of<coordinator_state>(cluster.host).copies;
  auto known = [&] { return copies.find(device_id{1}, address, 8).engaged(); };
  auto remember = [&] {
    REQUIRE(host.wait_for(host.copy_in(1, address, counted_bytes(8))).error() == "");
    CHECK(known());
  };
  remember();
  host.wait_for(host.copy(1, address + 64, address + 4, 8));
  CHECK_FALSE(known());
  remember();
  host.begin_receive(1, 4711, address, 4, 1);
  CHECK_FALSE(known());
  remember();
  auto under_way = host.copy_in(1, address, counted_bytes(8, 9));
  while (known())
    REQUIRE(cluster.step());
  CHECK_FALSE(under_way->arrived()); // it is not certain yet what is there
  host.wait_for(under_way);
  CHECK(known());
}

TEST_CASE("coordinator: what it writes as it ends has the time at which it ends") {
  simulation_options how;
  how.journaled = true;
  simulated_cluster cluster{how};
  cluster.advance(3s);
  cluster.self->monitor(cluster.host);
  cluster.self->send_exit(cluster.host, caf::exit_reason::user_shutdown);
  cluster.run_until([&] { return !cluster.self->mailbox().empty(); });
  cluster.self->receive([](const caf::down_msg&) {});
  auto last = cluster.history().back();
  REQUIRE(last.has_ids_reserved());
  CHECK(std::chrono::nanoseconds{last.time_ns()} >= 3s);
  CHECK(std::chrono::nanoseconds{last.time_ns()} <= time_of(cluster));
}

TEST_CASE("coordinator: without a journal it says so") {
  simulated_cluster cluster{{}};
  CHECK(contains(cluster.ask_coordinator<proto::JournalFlushResponse>(proto::JournalFlushRequest{}).error(),
                 "no journal"));
  CHECK(contains(cluster.ask_coordinator<proto::JournalTailResponse>(proto::JournalTailRequest{}).error(),
                 "no journal"));
}

TEST_CASE("coordinator: when it has died its clients' and devices' requests do not wait for ever") {
  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  cluster.self->send_exit(cluster.host, caf::exit_reason::kill);
  auto pending = host.ask<proto::ClusterInfo>(cluster.host, at_least(1, 1s));
  cluster.run_until([&] { return pending->arrived(); });
  CHECK(pending->problem != "");
}

TEST_CASE("coordinator: its communicators end with it, whatever they wait for") {
  simulated_cluster cluster{{}};
  cluster.init(2);
  auto handle = communicator_of(cluster);
  cluster.self->monitor(handle);
  cluster.self->send_exit(cluster.host, caf::exit_reason::kill);
  cluster.run_until([&] { return !cluster.self->mailbox().empty(); });
  bool down = false;
  cluster.self->receive([&](const caf::down_msg& x) { down = x.source == handle.address(); });
  CHECK(down);
}

TEST_CASE("coordinator: a communicator's name is reported with it, but not with those derived from it") {
  simulation_options how;
  how.journaled = true;
  simulated_cluster cluster{how};
  gpu_sim::CommInitRequest request;
  request.set_numdevices(2);
  request.set_name("training by ddp");
  auto made = cluster.ask_coordinator<gpu_sim::CommInitResponse>(request);
  REQUIRE(made.error() == "");
  proto::CommDeriveRequest halves;
  halves.set_comm_id(made.commid());
  for (int color : {0, 1}) {
    halves.mutable_split()->add_colors(color);
    halves.mutable_split()->add_keys(0);
  }
  REQUIRE(cluster.ask_coordinator<proto::CommDeriveResponse>(halves).error() == "");
  proto::ClusterInfoRequest with_communicators;
  with_communicators.set_communicators(true);
  const auto info = cluster.ask_coordinator<proto::ClusterInfo>(with_communicators);
  const auto status = cluster.ask_coordinator<proto::ClusterStatus>(proto::ClusterStatusRequest{});
  REQUIRE(info.communicators_size() == 3);
  REQUIRE(status.communicators_size() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(info.communicators(i).name() == (i == 0 ? "training by ddp" : ""));
    CHECK(status.communicators(i).name() == (i == 0 ? "training by ddp" : ""));
  }
  int named = 0;
  const auto records = cluster.log->read();
  REQUIRE(records);
  for (auto& record : *records)
    named += record.communicator_created().name() == "training by ddp" ? 1 : 0;
  CHECK(named == 1);
  for (auto& name : {std::string(65, 'x'), std::string{"two\nlines"}}) {
    request.set_name(name);
    const auto refused = cluster.ask_coordinator<gpu_sim::CommInitResponse>(request);
    CHECK(refused.error() == "a communicator's name is one line of 64 bytes at most, without control characters");
    CHECK(refused.code() == static_cast<uint32_t>(errc::invalid_argument));
  }
}

TEST_CASE("coordinator: CommInit on devices that must be free is refused if another communicator has one of them") {
  simulated_cluster cluster{with_devices(4)};
  const auto first = cluster.init(1);
  const auto taken = first.devices(0).deviceid().value();
  gpu_sim::CommInitRequest request;
  for (uint64_t id = 1; id <= 3; ++id) {
    request.add_deviceids(id);
    request.add_freedeviceids(id);
  }
  const auto refused = cluster.ask_coordinator<gpu_sim::CommInitResponse>(request);
  CHECK(refused.error() == fmt::format("device 0x{:x} is in communicator {} already", taken, first.commid()));
  CHECK(refused.code() == static_cast<uint32_t>(errc::in_use));
  auto shared = request; // the device may be another communicator's, the others may not
  shared.clear_freedeviceids();
  for (uint64_t id = 1; id <= 3; ++id)
    if (id != taken)
      shared.add_freedeviceids(id);
  const auto made = cluster.ask_coordinator<gpu_sim::CommInitResponse>(shared);
  CHECK(made.error() == "");
  CHECK(made.devices_size() == 3);
  CHECK(cluster.ask_coordinator<gpu_sim::CommInitResponse>(shared).code() == static_cast<uint32_t>(errc::in_use));
  request.add_freedeviceids(4);
  CHECK(cluster.ask_coordinator<gpu_sim::CommInitResponse>(request).error()
        == "freeDeviceIds names device 0x4, and deviceIds does not");
}

TEST_CASE("coordinator: of two clients that want the same free device one gets it") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    simulated_cluster cluster{with_devices(2, seed)};
    simulated_client one{cluster}, other{cluster};
    gpu_sim::CommInitRequest request;
    request.add_deviceids(1);
    request.add_freedeviceids(1);
    const auto first = one.ask<gpu_sim::CommInitResponse>(cluster.host, request);
    const auto second = other.ask<gpu_sim::CommInitResponse>(cluster.host, request);
    const bool first_has_it = one.wait_for(first).success(), second_has_it = other.wait_for(second).success();
    CHECK(first_has_it != second_has_it);
  }
}
