#include "actors/devices/device.hpp"

#include "tests/support/actor_state.hpp"
#include "tests/support/simulated_client.hpp"

#include <filesystem>
#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// Two devices in a communicator; most tests use the first.
struct one_device {
  explicit one_device(uint32_t commands_max = 4096) {
    if (commands_max != 4096) { // the devices of the cluster itself have the usual limit: these are before them
      for (auto& old : cluster.devices)
        cluster.stop(old);
      cluster.devices.clear();
      cluster.device_settings.streams_options.commands_max = commands_max;
      cluster.add_devices(2);
    }
    comm = cluster.init(2);
    id = comm.devices(0).deviceid().value();
    min = comm.devices(0).minmemaddr().value();
    max = comm.devices(0).maxmemaddr().value();
  }

  std::string copy_in_error(uint64_t address, size_t bytes) {
    return host.wait_for(host.copy_in(id, address, counted_bytes(bytes))).error();
  }

  std::string copy_out_error(uint64_t address, uint64_t bytes) {
    return host.wait_for(host.copy_out(id, address, bytes)).error();
  }

  /// Blocks the stream until `unblock`.
  void block(uint64_t stream) { REQUIRE(host.begin_receive(id, 99, min + 1024, 1, 1, stream).error() == ""); }
  void unblock() { REQUIRE(host.feed(id, 99, "x") == ""); }

  simulated_cluster cluster{{}};
  simulated_client host{cluster};
  gpu_sim::CommInitResponse comm;
  uint64_t id = 0;
  uint64_t min = 0, max = 0;
};

} // namespace

TEST_CASE("device: members that come without their handles, or with more, change nothing") {
  one_device x;
  const auto target = device_of(x.cluster, x.id);
  proto::Members forged;
  forged.set_comm_id(x.comm.commid());
  forged.set_epoch(9);
  *forged.add_devices() = x.comm.devices(0);
  const auto me = caf::actor_cast<caf::strong_actor_ptr>(target);
  for (const size_t handles : {0, 2, 3}) {
    x.cluster.self->send(target, membership::of(forged, device_handles(handles, device_handle{me, me})));
    x.cluster.run_until([&] { return x.cluster.scheduler.jobs.empty(); });
  }
  auto& known = state_of<device_state>(target).communicators.at(communicator_id{x.comm.commid()});
  CHECK(known.members->devices_size() == 2);
  CHECK(known.handles->size() == 2);
}

TEST_CASE("device: an access outside of its memory is refused with device, address and range") {
  one_device x;
  auto range = fmt::format("[{:#x}, {:#x})", x.min, x.max);
  for (uint64_t address :
       {x.max - 3, x.max, x.min - 1, x.comm.devices(1).minmemaddr().value(), UINT64_MAX - 2, uint64_t{0}}) {
    auto hex = fmt::format("{:#x}", address);
    for (auto& error : {x.copy_in_error(address, 4), x.copy_out_error(address, 4),
                        x.host.wait_for(x.host.copy(x.id, address, x.min, 4)).error(),
                        x.host.wait_for(x.host.copy(x.id, x.min, address, 4)).error()}) {
      CAPTURE(error);
      CHECK(contains(error, "device 0x1: "));
      CHECK(contains(error, hex));
      CHECK(contains(error, range));
    }
  }
  CHECK(contains(x.copy_out_error(x.min, UINT64_MAX), range));
  CHECK(contains(x.host.begin_receive(x.id, 7, UINT64_MAX, 16, 1).error(), range)); // the host's copies live on, too
  CHECK(contains(
    x.host
      .wait_for(x.host.ask<gpu_sim::MemcpyResponse, byte_block>(x.cluster.host, gpu_sim::MemcpyRequest{}, byte_block{}))
      .error(),
    "neither"));
}

TEST_CASE("device: the last byte can be copied, and nothing at all anywhere up to the end") {
  one_device x;
  CHECK(x.copy_in_error(x.max - 1, 1) == "");
  CHECK(x.copy_out_error(x.max - 1, 1) == "");
  CHECK(x.copy_in_error(x.max, 0) == "");
  CHECK(x.copy_out_error(x.max, 0) == "");
  CHECK(x.host.wait_for(x.host.copy(x.id, x.max, x.min, 0)).success());
  CHECK(x.host.wait_for(x.host.copy(x.id, x.max - 1, x.min, 1)).success());
}

TEST_CASE("device: allocates, frees, and says how much there is where it cannot") {
  one_device x;
  auto allocate = [&](uint64_t bytes) {
    proto::AllocateRequest request;
    request.set_bytes(bytes);
    return x.host.call<proto::AllocateResponse>(x.id, request);
  };
  auto release = [&](uint64_t address) {
    proto::FreeRequest request;
    request.mutable_address()->set_value(address);
    return x.host.call<proto::FreeResponse>(x.id, request).error();
  };
  auto all = allocate(x.max - x.min);
  REQUIRE(all.error() == "");
  CHECK(all.address().value() == x.min);
  CHECK(contains(allocate(1).error(), "device 0x1"));
  CHECK(release(all.address().value()) == "");
  CHECK(contains(release(all.address().value()), "device 0x1"));
  CHECK(contains(allocate(0).error(), "device 0x1"));
}

TEST_CASE("device: commands of one stream run in the order of the calls") {
  one_device x;
  auto stream = x.host.new_stream(x.id);
  auto in = x.host.copy_in(x.id, x.min, counted_bytes(300), stream);
  auto within = x.host.copy(x.id, x.min, x.min + 400, 300, stream);
  auto out = x.host.copy_out(x.id, x.min + 400, 300, stream);
  auto over = x.host.copy_in(x.id, x.min + 400, counted_bytes(300, 7), stream);
  x.host.wait_for(over);
  CHECK(in->get().error() == "");
  CHECK(within->get().success());
  REQUIRE(out->arrived());
  CHECK(text_of(std::get<1>(*out->values)) == text_of(counted_bytes(300)));
}

TEST_CASE("device: a copy within the memory may overlap itself, in either direction") {
  one_device x;
  auto bytes = text_of(counted_bytes(200));
  for (uint64_t shift : {1, 7, 64, 199}) {
    for (bool forwards : {true, false}) {
      CAPTURE(shift);
      CAPTURE(forwards);
      auto from = x.min + (forwards ? 0 : shift), to = x.min + (forwards ? shift : 0);
      x.host.wait_for(x.host.copy_in(x.id, from, counted_bytes(200)));
      CHECK(x.host.wait_for(x.host.copy(x.id, from, to, 200)).error() == "");
      CHECK(text_of(x.cluster.copy_out(x.id, to, 200)) == bytes);
    }
  }
}

TEST_CASE("device: a stream that waits does not hold up another; to synchronize says what it waited for") {
  one_device x;
  auto blocked = x.host.new_stream(x.id), other = x.host.new_stream(x.id);
  x.block(blocked);
  auto behind = x.host.copy(x.id, x.min, x.min + 8, 8, blocked);
  CHECK(x.host.wait_for(x.host.copy(x.id, x.min, x.min + 8, 8, other)).success());
  CHECK_FALSE(behind->arrived());
  CHECK(x.host.status(x.id, blocked).status() == gpu_sim::IN_PROGRESS);
  CHECK(x.host.status(x.id, other).status() == gpu_sim::SUCCESS);
  auto waited = x.host.wait_for(x.host.synchronize(x.id, blocked, 500ms));
  CHECK_FALSE(waited.success());
  CHECK(contains(waited.error(), "waited 0.5 s for stream"));
  CHECK(contains(waited.error(), "the first of them a receive"));
  x.unblock();
  CHECK(x.host.wait_for(x.host.synchronize(x.id, blocked)).success());
  CHECK(x.host.wait_for(behind).success());
}

TEST_CASE("device: a stream's status is that of its latest command") {
  one_device x;
  CHECK(x.host.status(x.id, 0).status() == gpu_sim::SUCCESS);
  CHECK(x.copy_out_error(x.max, 1) != "");
  auto failed = x.host.status(x.id, 0);
  CHECK(failed.status() == gpu_sim::FAILED);
  CHECK(contains(failed.error(), "beyond its memory"));
  CHECK(x.copy_out_error(x.min, 1) == "");
  CHECK(x.host.status(x.id, 0).status() == gpu_sim::SUCCESS);
}

TEST_CASE("device: a stream's queue has a limit, which every kind of command meets with a sentence") {
  one_device x{2};
  auto stream = x.host.new_stream(x.id);
  x.block(stream);
  auto second = x.host.copy(x.id, x.min, x.min + 8, 8, stream);
  auto limit = "has 2 commands queued, its limit";
  CHECK(contains(x.host.wait_for(x.host.copy(x.id, x.min, x.min + 8, 8, stream)).error(), limit));
  CHECK(contains(x.host.wait_for(x.host.copy_out(x.id, x.min, 8, stream)).error(), limit));
  CHECK(contains(x.host.wait_for(x.host.synchronize(x.id, stream)).error(), limit));
  CHECK(contains(x.host.record(x.id, 7, stream), limit));
  CHECK(x.host.wait_event(x.id, 7, stream) == ""); // that record will not be made: no wait
  auto sent = x.host.begin_send(x.id, x.min, 8, 1, stream);
  CHECK(contains(x.host.ended(x.id, sent.streamid().value()).error(), limit));
  CHECK(x.host.begin_receive(x.id, 4711, x.min, 8, 1, stream).error() == "");
  CHECK(contains(x.host.ended(x.id, 4711).error(), limit));
  x.unblock();
  CHECK(x.host.wait_for(second).success());
}

TEST_CASE("device: who waits for one that dies is answered at once, and a later request gets the result") {
  one_device x;
  auto stream = x.host.new_stream(x.id);
  x.block(stream);
  auto copied = x.host.copy(x.id, x.min, x.min + 8, 8, stream);
  auto in = x.host.copy_in(x.id, x.min, counted_bytes(8), stream);
  auto synchronized = x.host.synchronize(x.id, stream, 60s);
  auto began = time_of(x.cluster);
  x.cluster.inject(x.id, proto::FaultRequest{});
  auto death = "died while it was asked: killed on request";
  CHECK((contains(x.host.wait_for(copied).error(), death) || contains(copied->get().error(), "the stream died")));
  CHECK((contains(x.host.wait_for(in).error(), death) || contains(in->get().error(), "the stream died")));
  CHECK_FALSE(x.host.wait_for(synchronized).success());
  CHECK(time_of(x.cluster) - began < 1s);
  x.cluster.run_until([&] {
    return x.cluster.ask_coordinator<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices_size() == 3;
  });
  CHECK(contains(x.host.status(x.id, 0).error(), "device 0x1 has died: "));
  CHECK(contains(x.host.status(77, 0).error(), "there is no device 0x4d"));
}

TEST_CASE("device: the file of its memory goes with it, also while the cluster lives") {
  one_device x;
  auto file = memory_file(x.cluster.dir, device_id{x.id});
  CHECK(std::filesystem::exists(file));
  x.cluster.inject(x.id, proto::FaultRequest{});
  x.cluster.run_until([&] { return !std::filesystem::exists(file); });
  CHECK(std::filesystem::exists(memory_file(x.cluster.dir, id_of(x.comm.devices(1)))));
}

TEST_CASE("device: one whose file is cut, as by a full disk, is lost with a sentence, and its process lives") {
  one_device x;
  std::filesystem::resize_file(memory_file(x.cluster.dir, device_id{x.id}), 0);
  CHECK(contains(x.copy_in_error(x.min, 8), "was cut, or its disk is full"));
  x.cluster.run_until([&] { return contains(x.host.status(x.id, 0).error(), "device 0x1 has died: "); });
  CHECK(contains(x.host.status(x.id, 0).error(), "was cut, or its disk is full"));
}

TEST_CASE("device: one that hangs is not waited for beyond the limit") {
  one_device x;
  proto::FaultRequest hang;
  hang.set_kind(proto::FaultRequest::HANG);
  x.cluster.inject(4, hang);
  CHECK(contains(x.host.status(4, 0).error(), "device 0x4 did not answer within 10.0 s"));
  hang.set_kind(static_cast<proto::FaultRequest::Kind>(9));
  CHECK(contains(x.host.call<proto::FaultResponse>(1, hang).error(), "fault kind 9"));
}

TEST_CASE("device: one that hangs for a while does all that it was asked meanwhile, in its order") {
  one_device x;
  auto hangs = fault(proto::FaultRequest::HANG, std::nullopt, 300ms);
  auto began = time_of(x.cluster);
  x.cluster.inject(x.id, hangs);
  x.cluster.inject(x.id, hangs); // of which it hears when it goes on
  auto in = x.host.copy_in(x.id, x.min, counted_bytes(8));
  auto copied = x.host.copy(x.id, x.min, x.min + 64, 8);
  auto out = x.host.copy_out(x.id, x.min + 64, 8);
  x.host.wait_for(out);
  CHECK(time_of(x.cluster) - began >= 600ms);
  CHECK(time_of(x.cluster) - began < 700ms);
  CHECK(in->get().error() == "");
  CHECK(copied->get().error() == "");
  CHECK(text_of(std::get<1>(*out->values)) == text_of(counted_bytes(8)));
  CHECK(x.copy_in_error(x.min, 8) == "");
  CHECK(time_of(x.cluster) - began < 700ms);
}

TEST_CASE("device: asked before it has joined it says so, and gives up where no one gives it an id") {
  deterministic_system x;
  device_options options;
  auto never_answers = [](caf::event_based_actor* self, bool) -> caf::behavior {
    self->set_default_handler(caf::skip);
    return {[](atom::flush) {}};
  };
  auto deaf = x.sys.spawn(never_answers, true);
  options.coordinator = caf::actor_cast<coordinator_actor>(deaf);
  auto lonely = x.sys.spawn(device, options);
  x.self->monitor(lonely);
  auto answer = x.ask<gpu_sim::GetDeviceMetadataResponse>(lonely, gpu_sim::GetDeviceMetadataRequest{});
  REQUIRE(answer);
  CHECK(contains(answer->error(), "has not joined"));
  x.advance(31s);
  bool ended = false;
  x.self->receive(
    [&](const caf::down_msg& down) {
      ended = true;
      CHECK(contains(render(down.reason), "gave the device no id"));
    },
    caf::after(0s) >> [] {});
  CHECK(ended);
  x.stop(deaf);
}
