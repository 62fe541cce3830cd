// A cluster of real processes, and processes of each role that try what they may not do. Over real sockets.
#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connection_watch.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/training/type_ids.hpp"
#include "messages/interfaces.hpp"
#include "runtime/trust/permissions.hpp"
#include "runtime/trust/role_secret.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <caf/all.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::launch;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// `ringmaster coordinator` and a node with two devices, and files with secrets of roles.
struct guarded_cluster {
  guarded_cluster() {
    cluster_secret.create(secret_file);
    start_coordinator();
    where = "127.0.0.1:" + std::to_string(port);
    node.emplace(command({"node", "--join", where, "--devices", "2", "--name", "one", "--secret-file", secret_file}));
    auto info = run(secret_file, {"info", "--join", where, "--devices", "2"});
    REQUIRE_MESSAGE(info.first == 0, info.second);
  }

  /// On the port of before, if there was one.
  void start_coordinator() {
    std::filesystem::remove(port_file);
    coordinator.emplace(command({"coordinator", "--port", std::to_string(port), "--port-file", port_file, "--journal",
                                 journal, "--secret-file", secret_file}));
    REQUIRE_MESSAGE(coordinator->wait_until([&] { return std::filesystem::exists(port_file); }), coordinator->error);
    std::ifstream{port_file} >> port;
  }

  std::string file_of(role as, const std::string& name = {}) const {
    auto file = (dir.path() / (std::string{name_of(as)} + name)).string();
    if (!std::filesystem::exists(file)) {
      const role_secret made{as, name, derive_secret(cluster_secret, as, name)};
      REQUIRE_FALSE(shared_secret::of(made.text(), "it")->create(file));
    }
    return file;
  }

  std::vector<std::string> command(std::vector<std::string> words) const {
    std::vector<std::string> result{"env",
                                    "-u",
                                    "RINGMASTER_SECRET",
                                    "-u",
                                    "RINGMASTER_SECRET_FILE",
                                    "XDG_RUNTIME_DIR=" + dir.path().string(),
                                    RINGMASTER_PROGRAM};
    result.insert(result.end(), words.begin(), words.end());
    return result;
  }

  /// Its status, and what it writes.
  std::pair<int, std::string> run(const std::string& secret, std::vector<std::string> words) const {
    words.push_back("--secret-file");
    words.push_back(secret);
    launched_program program{command(std::move(words))};
    const int status = program.finish();
    return {status, program.output + program.error};
  }

  void check_alive() const {
    const auto status = run(secret_file, {"info", "--join", where});
    CHECK_MESSAGE(status.first == 0, status.second);
    CHECK_MESSAGE(contains(status.second, "2 devices"), status.second);
  }

  std::string log(std::vector<std::string> options) const {
    options.insert(options.begin(), {"log", journal});
    launched_program program{command(std::move(options))};
    CHECK(program.finish() == 0);
    return program.output;
  }

  temporary_directory dir;
  const shared_secret cluster_secret = shared_secret::random();
  const std::string secret_file = (dir.path() / "secret").string(), port_file = (dir.path() / "port").string(),
                    journal = (dir.path() / "journal").string();
  std::optional<launched_program> coordinator, node;
  uint16_t port = 0;
  std::string where;
};

/// This process as a peer of the cluster, with a secret of its own.
struct peer_process {
  struct configuration : caf::actor_system_config, trust_source {
    explicit configuration(std::string file) : file_(std::move(file)) {
      set("scheduler.max-threads", 1);
      load<watched_middleman>();
      add_messages(*this);
    }
    trust_settings trust() const override { return {.secret_file = file_, .insecure = false}; }
    std::string file_;
  };

  peer_process(const guarded_cluster& of, std::string secret) : cfg(std::move(secret)) {
    auto found = connect_to(system, {"127.0.0.1", of.port}, 10s);
    REQUIRE_MESSAGE(found, (found ? "" : render(found.error())));
    coordinator = caf::actor_cast<coordinator_actor>(found->handle);
  }

  /// The error that a request is answered with; none if it is not an error of the connection.
  template <class Actor, class... Ts>
  caf::error ask(const Actor& whom, Ts... what) {
    caf::scoped_actor self{system};
    caf::error result;
    self->request(caf::actor_cast<caf::actor>(whom), 10s, std::move(what)...)
      .receive([](const caf::message&) {}, [&](caf::error& x) { result = std::move(x); });
    return result;
  }

  template <class Response, class... Ts>
  Response answer(Ts... what) {
    caf::scoped_actor self{system};
    Response result;
    self->request(coordinator, 10s, std::move(what)...)
      .receive([&](Response& x) { result = std::move(x); }, [&](const caf::error& x) { FAIL_CHECK(render(x)); });
    return result;
  }

  configuration cfg;
  caf::actor_system system{cfg};
  coordinator_actor coordinator;
};

gpu_sim::CommInitRequest two_devices() {
  gpu_sim::CommInitRequest result;
  result.set_numdevices(2);
  result.set_defaultpolicy(true);
  result.set_outlivesclient(true); // the actor that asks here, not its process
  return result;
}

gpu_sim::DeviceId id_of_device(const gpu_sim::DeviceMetadata& x) {
  return x.deviceid();
}

bool is_denied(const caf::error& x) {
  return code_of(x) == errc::permission_denied;
}

template <class... Ts>
std::vector<caf::message> bare() {
  return {caf::make_message(Ts{})...};
}
template <class... Ts>
std::vector<caf::message> to_device(const gpu_sim::DeviceId& device) {
  return {caf::make_message(device, Ts{})...};
}

/// All that uses or changes a cluster.
std::vector<caf::message> uses_of(const gpu_sim::DeviceId& device) {
  auto result
    = bare<gpu_sim::CommInitRequest, gpu_sim::GetCommStatusRequest, gpu_sim::GroupStartRequest,
           gpu_sim::GroupEndRequest, gpu_sim::AllReduceRingRequest, gpu_sim::MemcpyRequest, proto::CollectiveRequest,
           proto::CollectiveRequests, proto::RankCall, proto::CommDeriveRequest, proto::CommWaitRequest,
           proto::CommAbortRequest, proto::CommDestroyRequest, proto::RendezvousRequest, proto::FinalizeRequest,
           proto::RankAbsentRequest, proto::MeetingRequest, proto::JournalFlushRequest, proto::JournalTailRequest,
           proto::DrainRequest, proto::DeviceJoinRequest, gpu_sim::DeviceId>();
  for (auto& each : to_device<gpu_sim::BeginSendRequest, gpu_sim::BeginReceiveRequest, gpu_sim::DataChunk,
                              gpu_sim::GetStreamStatusRequest, proto::CopyRequest, proto::AllocateRequest,
                              proto::FreeRequest, proto::StreamCreateRequest, proto::StreamSynchronizeRequest,
                              proto::EventRecordRequest, proto::EventWaitRequest, proto::FaultRequest>(device))
    result.push_back(each);
  return result;
}

} // namespace

TEST_CASE("roles: an observer sees the cluster, and everything else that it tries is refused") {
  guarded_cluster x;
  const auto observer = x.file_of(role::observer);
  const auto status = x.run(observer, {"status", "--join", x.where});
  CHECK_MESSAGE(status.first == 0, status.second);
  peer_process peer{x, observer};
  const auto info = peer.answer<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  REQUIRE(info.devices_size() == 2);
  for (auto& each : uses_of(id_of_device(info.devices(0).metadata()))) {
    CAPTURE(caf::to_string(each));
    CHECK(is_denied(peer.ask(peer.coordinator, each)));
  }
  for (const auto& words : {std::vector<std::string>{"kill", "0x1"},
                            {"hang", "0x1"},
                            {"drain", "one"},
                            {"destroy", "1"},
                            {"slow", "0x1", "10ms"}}) {
    auto command = words;
    command.insert(command.end(), {"--join", x.where});
    const auto tried = x.run(observer, command);
    CHECK_MESSAGE(tried.first != 0, tried.second);
    CHECK_MESSAGE(contains(tried.second, "an observer may not "), tried.second);
  }
  x.check_alive();
  CHECK_MESSAGE(x.coordinator->await_output("(observer) was refused: an observer may not"), x.coordinator->error);
}

TEST_CASE("roles: a client uses what it has made, and not the communicators, memory and journal of others") {
  guarded_cluster x;
  peer_process alice{x, x.file_of(role::client, "alice")}, again{x, x.file_of(role::client, "alice")},
    bob{x, x.file_of(role::client, "bob")}, operating{x, x.file_of(role::operating)};
  const auto made = alice.answer<gpu_sim::CommInitResponse>(two_devices());
  REQUIRE_MESSAGE(made.success(), made.error());
  const auto device = id_of_device(made.devices(0));
  const auto in = [&](auto request) {
    if constexpr (requires { request.set_comm_id(0); })
      request.set_comm_id(made.commid());
    else
      request.set_commid(made.commid());
    return request;
  };
  proto::CollectiveRequests several;
  *several.add_calls() = in(proto::CollectiveRequest{});
  gpu_sim::MemcpyRequest in_copy, out_copy;
  *in_copy.mutable_hosttodevice()->mutable_dstdeviceid() = device;
  *out_copy.mutable_devicetohost()->mutable_srcdeviceid() = device;
  gpu_sim::CommInitRequest over_both;
  over_both.add_deviceids(device.value());
  over_both.set_defaultpolicy(true);
  std::vector<caf::message> uses{caf::make_message(in(gpu_sim::GetCommStatusRequest{})),
                                 caf::make_message(in(gpu_sim::GroupStartRequest{})),
                                 caf::make_message(in(gpu_sim::AllReduceRingRequest{})),
                                 caf::make_message(in(proto::CollectiveRequest{})),
                                 caf::make_message(several),
                                 caf::make_message(in(proto::RankCall{})),
                                 caf::make_message(in(proto::CommDeriveRequest{})),
                                 caf::make_message(in(proto::CommWaitRequest{})),
                                 caf::make_message(in(proto::CommAbortRequest{})),
                                 caf::make_message(in(proto::CommDestroyRequest{})),
                                 caf::make_message(in(proto::JournalTailRequest{})),
                                 caf::make_message(proto::JournalTailRequest{}),
                                 caf::make_message(in_copy, byte_block::of(std::vector<char>(8))),
                                 caf::make_message(out_copy),
                                 caf::make_message(over_both),
                                 caf::make_message(device)};
  for (auto& each : to_device<gpu_sim::BeginSendRequest, gpu_sim::DataChunk, proto::CopyRequest, proto::AllocateRequest,
                              proto::FreeRequest, proto::StreamSynchronizeRequest>(device))
    uses.push_back(each);
  for (auto& each : uses) {
    CAPTURE(caf::to_string(each));
    CHECK(is_denied(bob.ask(bob.coordinator, each)));
  }
  // Its own, also from another process with the name; and an operator all.
  for (auto* peer : {&alice, &again, &operating}) {
    CHECK(peer->answer<gpu_sim::GetCommStatusResponse>(in(gpu_sim::GetCommStatusRequest{})).error().empty());
    CHECK(peer->answer<proto::ClusterStatus>(proto::ClusterStatusRequest{}).communicators_size() == 1);
    proto::AllocateRequest some;
    some.set_bytes(256);
    CHECK(peer->answer<proto::AllocateResponse>(device, some).error().empty());
  }
  CHECK(bob.answer<proto::ClusterStatus>(proto::ClusterStatusRequest{}).communicators_size() == 0);
  proto::ClusterInfoRequest with_communicators;
  with_communicators.set_communicators(true);
  CHECK(bob.answer<proto::ClusterInfo>(with_communicators).communicators_size() == 0);
  CHECK(is_denied(alice.ask(alice.coordinator, device, proto::FaultRequest{})));
  CHECK(operating.answer<proto::CommDestroyResponse>(in(proto::CommDestroyRequest{})).success());
  x.check_alive();
}

TEST_CASE("roles: what a client has made stays its own when the coordinator is killed and started again") {
  guarded_cluster x;
  const auto files = std::pair{x.file_of(role::client, "alice"), x.file_of(role::client, "bob")};
  gpu_sim::DeviceId device;
  gpu_sim::MemAddr address;
  {
    peer_process alice{x, files.first};
    device = id_of_device(alice.answer<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices(0).metadata());
    proto::AllocateRequest some;
    some.set_bytes(256);
    some.set_outlives_client(true);
    some.set_maker("name bob"); // which it cannot choose
    address = alice.answer<proto::AllocateResponse>(device, some).address();
  }
  ::kill(x.coordinator->child.pid(), SIGKILL);
  x.coordinator->finish();
  x.start_coordinator();
  x.check_alive();
  peer_process alice{x, files.first}, bob{x, files.second};
  gpu_sim::MemcpyRequest out;
  *out.mutable_devicetohost()->mutable_srcdeviceid() = device;
  *out.mutable_devicetohost()->mutable_srcmemaddr() = address;
  out.mutable_devicetohost()->set_numbytes(16);
  proto::FreeRequest free;
  *free.mutable_address() = address;
  CHECK(is_denied(bob.ask(bob.coordinator, out)));
  CHECK(is_denied(bob.ask(bob.coordinator, device, free)));
  CHECK(!is_denied(alice.ask(alice.coordinator, out)));
  CHECK(alice.answer<proto::FreeResponse>(device, free).success());
}

TEST_CASE("roles: a node brings devices, and calls nothing that a client calls") {
  guarded_cluster x;
  const auto secret = x.file_of(role::node);
  peer_process peer{x, secret};
  const auto info = peer.answer<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  for (auto& each : uses_of(id_of_device(info.devices(0).metadata()))) {
    if (each.match_elements<proto::DeviceJoinRequest>() || each.match_elements<proto::JournalFlushRequest>())
      continue;
    CAPTURE(caf::to_string(each));
    CHECK(is_denied(peer.ask(peer.coordinator, each)));
  }
  launched_program node{
    x.command({"node", "--join", x.where, "--devices", "1", "--name", "two", "--secret-file", secret})};
  const auto joined = x.run(x.secret_file, {"info", "--join", x.where, "--devices", "3"});
  CHECK_MESSAGE(contains(joined.second, "two"), joined.second, node.error);
  node.child.signal(SIGTERM);
  CHECK(node.finish() == 0);
  CHECK(contains(x.log({"--audit"}), "joins as node two with 1 device"));
}

TEST_CASE("roles: exit messages, links, errors and messages to itself end no actor of the system") {
  guarded_cluster x;
  for (const auto as : {role::member, role::rank, role::node, role::client, role::operating, role::observer}) {
    CAPTURE(name_of(as));
    peer_process peer{x, as == role::member ? x.secret_file : x.file_of(as)};
    std::vector<caf::strong_actor_ptr> whom{caf::actor_cast<caf::strong_actor_ptr>(peer.coordinator)};
    if (as == role::member || as == role::rank || as == role::operating) {
      const auto info = peer.answer<proto::ClusterInfo>(proto::ClusterInfoRequest{});
      const auto handle = peer.answer<device_handle>(id_of_device(info.devices(0).metadata()));
      whom.insert(whom.end(), {handle.device, handle.stream, handle.relay}); // by way of the coordinator
    }
    caf::scoped_actor self{peer.system};
    const auto own = caf::actor_cast<caf::strong_actor_ptr>(self);
    for (auto& each : whom) {
      if (!each)
        continue;
      for (auto& what : {caf::make_message(caf::exit_msg{self->address(), caf::exit_reason::kill}),
                         caf::make_message(caf::exit_msg{self->address(), caf::exit_reason::user_shutdown}),
                         caf::make_message(caf::down_msg{each->address(), caf::exit_reason::kill}),
                         caf::make_message(make_error(errc::refused, "a bare error")),
                         caf::make_message(caf::link_atom_v, own), caf::make_message(atom::expire_v),
                         caf::make_message(atom::expire_v, uint64_t{1}), caf::make_message(std::string{"unknown"}, 1)})
        each->enqueue(own, caf::make_message_id(), what, nullptr);
    }
    // What comes after them over the same connections is answered, so they have been there.
    CHECK(peer.answer<proto::ClusterInfo>(proto::ClusterInfoRequest{}).devices_size() == 2);
  } // and here a process with a link ends
  x.check_alive();
  const auto made = x.run(x.secret_file, {"bench", "all_reduce", "--join", x.where, "--devices", "2", "--min-bytes",
                                          "1KiB", "--max-bytes", "1KiB", "--samples", "1", "--iterations", "1"});
  CHECK_MESSAGE(made.first == 0, made.second);
}

TEST_CASE("roles: the journal has who did what, from where") {
  guarded_cluster x;
  const auto out = (x.dir.path() / "olga").string();
  const auto derived = x.run(x.secret_file, {"secret", "--role", "operator", "--name", "olga", "--out", out});
  CHECK_MESSAGE(derived.first == 0, derived.second);
  CHECK((std::filesystem::status(out).permissions() & std::filesystem::perms::mask)
        == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  const auto climbed = x.run(out, {"secret", "--role", "operator"});
  CHECK(climbed.first == 1);
  CHECK(contains(climbed.second, "others are derived from the cluster's own only"));
  peer_process client{x, x.file_of(role::client, "carl")};
  const auto made = client.answer<gpu_sim::CommInitResponse>(two_devices());
  REQUIRE(made.success());
  CHECK(x.run(out, {"destroy", std::to_string(made.commid()), "--join", x.where}).first == 0);
  CHECK(x.run(x.file_of(role::observer, "otto"), {"kill", "0x1", "--join", x.where}).first != 0);
  const auto info = client.answer<proto::ClusterInfo>(proto::ClusterInfoRequest{});
  const auto device = fmt::format("{:#x}", info.devices(0).metadata().deviceid().value());
  const auto killed = x.run(out, {"kill", device, "--join", x.where});
  CHECK_MESSAGE(killed.first == 0, killed.second);
  const auto log = x.log({"--audit"});
  for (const auto& words :
       {std::string{"member at 127.0.0.1:"}, std::string{"joins as node one with 2 devices"},
        std::string{"client carl at 127.0.0.1:"}, fmt::format("makes communicator {} of 2 devices", made.commid()),
        std::string{"operator olga at 127.0.0.1:"}, fmt::format("destroys communicator {}", made.commid()),
        "kills device " + device, std::string{"observer otto at 127.0.0.1:"},
        std::string{"was refused: an observer may not kill, hang or slow devices"}})
    CHECK_MESSAGE(contains(log, words), log);
  CHECK_FALSE(contains(log, "coordinator started"));
  CHECK(contains(x.log({"--audit", "--communicator", std::to_string(made.commid())}), "destroys communicator"));
}

TEST_CASE("roles: a process with the secret of a client or a node serves no one") {
  guarded_cluster x;
  for (const auto as : {role::client, role::node}) {
    launched_program coordinator{x.command({"coordinator", "--port", "0", "--secret-file", x.file_of(as)})};
    CHECK(coordinator.finish() == 1);
    CHECK_MESSAGE(contains(coordinator.error, "it needs the cluster's own secret"), coordinator.error);
  }
  const auto node = x.run(x.file_of(role::client), {"node", "--join", x.where, "--devices", "1", "--name", "two"});
  CHECK(node.first == 1);
}
