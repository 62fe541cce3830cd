// An error keeps its code from the one who says no to the program that asked.
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "client/rank_communicator.hpp"

#include <caf/actor_system.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t small_memory_bytes = 65536;

struct started {
  started() {
    auto problem = cfg.read(
      {"--device.count=4", "--device.memory-bytes=65536", "--device.streams=1", "--log.level=error"}, std::nullopt);
    REQUIRE(render(problem) == render(caf::error{}));
  }

  configuration cfg;
};

/// A cluster of four devices in this process, and a program that calls it.
struct program : started {
  program() : system{cfg} {
    auto made = cluster::start(system, cfg.values(), true);
    if (!made)
      FAIL(render(made.error()));
    home = std::move(*made);
    host.emplace(system, home->coordinator());
  }

  gpu_sim::CommInitResponse init(uint32_t ranks, proto::FailurePolicy policy = proto::SHRINK) {
    auto made = host->comm_init(ranks, policy);
    if (!made)
      FAIL(render(made.error()));
    return *made;
  }

  caf::actor_system system;
  std::unique_ptr<cluster> home;
  std::optional<client> host;
};

device_id device_of(const gpu_sim::CommInitResponse& x, int rank) {
  return id_of(x.devices(rank));
}

uint64_t first_address(const gpu_sim::CommInitResponse& x, int rank) {
  return x.devices(rank).minmemaddr().value();
}

proto::CollectiveRequest sum_of(const gpu_sim::CommInitResponse& x, uint64_t count = 1) {
  proto::CollectiveRequest result;
  result.set_comm_id(x.commid());
  result.mutable_collective()->set_algorithm("ring");
  result.mutable_collective()->set_count(count);
  for (auto& device : x.devices())
    result.add_inputs(device.minmemaddr().value());
  return result;
}

template <class T>
caf::error error_of(const caf::expected<T>& x) {
  return x ? caf::error{} : x.error();
}

} // namespace

TEST_CASE("codes: a cluster that has just been opened has its devices") {
  for (int i = 0; i < 3; ++i) {
    program p;
    CHECK_FALSE(error_of(p.host->comm_init(4)));
  }
}

TEST_CASE("codes: what a device refuses, the client can switch on") {
  program p;
  auto& host = *p.host;
  auto comm = p.init(2);
  auto device = device_of(comm, 0);
  CHECK(error_of(host.allocate(device, 0)) == errc::invalid_argument);
  CHECK(error_of(host.allocate(device, small_memory_bytes + 1)) == errc::too_large);
  REQUIRE_FALSE(error_of(host.allocate(device, small_memory_bytes / 2)));
  CHECK(error_of(host.allocate(device, small_memory_bytes - 256)) == errc::out_of_memory);
  CHECK(error_of(host.allocate(device_id{99}, 1)) == errc::unknown_device);
  CHECK(host.copy_to_device(device, first_address(comm, 1), byte_block::of(std::vector<char>(4)))
        == errc::out_of_range);
  CHECK(error_of(host.copy_to_host(device_id{99}, 0, 1)) == errc::unknown_device);
  gpu_sim::DeviceId id;
  id.set_value(device.value);
  gpu_sim::GetStreamStatusRequest status;
  status.mutable_streamid()->set_value(4711);
  CHECK(error_of(host.ask<gpu_sim::GetStreamStatusResponse>(id, status)) == errc::unknown_stream);
  gpu_sim::BeginSendRequest send;
  send.set_commid(77);
  CHECK(error_of(host.ask<gpu_sim::BeginSendResponse>(id, send)) == errc::unknown_communicator);
  send.set_commid(comm.commid());
  send.mutable_dstrank()->set_value(1);
  send.mutable_sendbuffaddr()->set_value(first_address(comm, 1));
  send.set_numbytes(8);
  CHECK(error_of(host.ask<gpu_sim::BeginSendResponse>(id, send)) == errc::out_of_range);
  proto::StreamSynchronizeRequest synchronize;
  synchronize.mutable_stream_id()->set_value(4711);
  CHECK(error_of(host.ask<proto::StreamSynchronizeResponse>(id, synchronize)) == errc::unknown_stream);
}

TEST_CASE("codes: the two ends of a transfer hear why it failed") {
  program p;
  auto& host = *p.host;
  auto comm = p.init(2);
  gpu_sim::DeviceId from, to;
  from.set_value(device_of(comm, 0).value);
  to.set_value(device_of(comm, 1).value);
  gpu_sim::BeginSendRequest send;
  send.mutable_dstrank()->set_value(1);
  send.mutable_sendbuffaddr()->set_value(first_address(comm, 0));
  send.set_numbytes(8);
  auto sent = host.ask<gpu_sim::BeginSendResponse>(from, send);
  REQUIRE(sent);
  gpu_sim::BeginReceiveRequest receive;
  *receive.mutable_streamid() = sent->streamid();
  receive.mutable_srcrank()->set_value(0);
  receive.mutable_recvbuffaddr()->set_value(first_address(comm, 1));
  receive.set_numbytes(16);
  REQUIRE_FALSE(error_of(host.ask<gpu_sim::BeginReceiveResponse>(to, receive)));
  gpu_sim::GetStreamStatusRequest status;
  *status.mutable_streamid() = sent->streamid();
  for (auto& end : {from, to}) {
    auto answer = host.ask<gpu_sim::GetStreamStatusResponse>(end, status);
    while (answer && answer->status() == gpu_sim::IN_PROGRESS)
      answer = host.ask<gpu_sim::GetStreamStatusResponse>(end, status);
    CHECK(error_of(answer) == errc::size_mismatch);
  }
}

TEST_CASE("codes: what the coordinator and a communicator refuse, the client can switch on") {
  program p;
  auto& host = *p.host;
  CHECK(error_of(host.comm_init(0)) == errc::invalid_argument);
  CHECK(error_of(host.comm_init(5)) == errc::too_few_devices);
  CHECK(error_of(host.comm_init(std::vector{device_id{99}})) == errc::unknown_device);
  CHECK(error_of(host.status(communicator_id{1})) == errc::unknown_communicator);
  CHECK(error_of(host.journal_tail(1)) == caf::error{});
  auto comm = p.init(3);
  CHECK(error_of(host.split(id_of(comm), {0})) == errc::invalid_argument);
  CHECK(error_of(host.grow(id_of(comm), 2)) == errc::too_few_devices);
  CHECK(host.group_end(id_of(comm)) == errc::group_misuse);
  CHECK_FALSE(host.group_start(id_of(comm)));
  CHECK(host.group_start(id_of(comm)) == errc::group_misuse);
  CHECK_FALSE(host.group_end(id_of(comm)));
  CHECK(error_of(host.collective(sum_of(comm, 1u << 20))) == errc::out_of_range);
  auto rong = sum_of(comm);
  rong.mutable_collective()->set_algorithm("rong");
  CHECK(error_of(host.collective(rong)) == errc::invalid_argument);
  CHECK_FALSE(host.abort(id_of(comm), "enough"));
  CHECK(error_of(host.collective(sum_of(comm))) == errc::aborted);
  CHECK(host.group_start(id_of(comm)) == errc::aborted);
  auto rank = rank_communicator::attach(p.system, p.home->coordinator(), id_of(comm), 0);
  REQUIRE(rank);
  CHECK_FALSE(host.destroy(id_of(comm)));
  CHECK(rank->barrier().wait(10s) == errc::unknown_communicator);
  CHECK(error_of(host.collective(sum_of(comm))) == errc::unknown_communicator);
  CHECK(host.destroy(id_of(comm)) == errc::unknown_communicator);
  auto gone = rank_communicator::attach(p.system, p.home->coordinator(), id_of(comm), 0);
  REQUIRE_FALSE(gone);
  CHECK(gone.error() == errc::unknown_communicator);
}

TEST_CASE("codes: a limit that passes is timed_out, and a coordinator that is gone device_lost") {
  program p;
  auto& host = *p.host;
  auto few = host.devices(5, 10ms);
  CHECK(error_of(few) == errc::timed_out);
  auto comm = p.init(2);
  REQUIRE_FALSE(host.group_start(id_of(comm)));
  REQUIRE_FALSE(error_of(host.collective(sum_of(comm)))); // waits for GroupEnd
  CHECK(error_of(host.wait(id_of(comm), 10ms)) == errc::timed_out);
  auto rank = rank_communicator::attach(p.system, p.home->coordinator(), id_of(comm), 0);
  REQUIRE(rank);
  auto alone = rank->barrier();
  CHECK(alone.wait(10ms) == errc::timed_out);
  // Not by ending the cluster, which ends its devices first: over the rank that is left the barrier would be complete.
  caf::anon_send_exit(p.home->coordinator(), caf::exit_reason::kill);
  CHECK(error_of(host.status(id_of(comm))) == errc::device_lost);
  auto lost = alone.wait(10s);
  CHECK_MESSAGE(code_of(lost) == errc::device_lost, render(lost));
}

TEST_CASE("codes: every code survives the wire, and one that is unknown is refused") {
  for (uint8_t number = 1; number < errc_count; ++number) {
    const auto code = static_cast<errc>(number);
    CAPTURE(to_string(code));
    const auto err = make_error(code, "why");
    const auto back = error_from_wire(wire_code(err), render(err));
    CHECK(code_of(back) == code);
    CHECK(render(back) == "why");
    CHECK(meaning_of(code) != "");
  }
  CHECK(to_string(errc::unreachable) == "unreachable");
  CHECK(to_string(static_cast<errc>(errc_count)) == fmt::format("errc_{}", errc_count));
  CHECK(meaning_of(static_cast<errc>(errc_count)) == "");
  CHECK(error_from_wire(errc_count, "why") == errc::refused);
  CHECK(error_from_wire(200, "why") == errc::refused);
  CHECK(error_from_wire(0, "why") == errc::refused);
  CHECK_FALSE(error_from_wire(0, ""));
  CHECK(wire_code({}) == 0);
  CHECK(error_from_wire(wire_code(caf::sec::request_timeout), "x") == errc::timed_out);
  CHECK(error_from_wire(wire_code(caf::exit_reason::kill), "x") == errc::device_lost);
}
