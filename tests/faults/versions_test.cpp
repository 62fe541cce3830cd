// Processes of several versions: one with another protocol is refused at once, with both versions.
#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connections.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/version.hpp"
#include "runtime/text/endpoint.hpp"
#include "tests/faults/started_coordinator.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

caf::behavior deaf(caf::event_based_actor*) {
  return {[](int) {}};
}

/// Says of itself what a coordinator of another version does, and answers nothing.
struct other_coordinator {
  explicit other_coordinator(uint32_t protocol) {
    auto says = system.message_types<coordinator_actor>();
    says.insert(fmt::format("ringmaster protocol {}", protocol));
    listens(listen_for(system, caf::actor_cast<caf::strong_actor_ptr>(whom), says, "127.0.0.1", 0));
  }
  /// One of the time before connections began with a greeting.
  other_coordinator() {
    caf::scoped_actor self{system};
    self
      ->request(system.middleman().actor_handle(), std::chrono::seconds{10}, caf::publish_atom_v, uint16_t{0},
                caf::actor_cast<caf::strong_actor_ptr>(whom), system.message_types<coordinator_actor>(),
                std::string{"127.0.0.1"}, true)
      .receive([&](uint16_t port) { listens(port); }, [](const caf::error& problem) { FAIL(render(problem)); });
  }
  ~other_coordinator() { caf::anon_send_exit(whom, caf::exit_reason::kill); }

  void listens(const caf::expected<uint16_t>& port) {
    REQUIRE_MESSAGE(port, render(port.error()));
    where = fmt::format("127.0.0.1:{}", *port);
  }

  configuration cfg;
  bool read = !cfg.read(std::vector<std::string>{"--coordinator.port=0"}, std::nullopt);
  caf::actor_system system{cfg};
  caf::actor whom = system.spawn(deaf);
  std::string where;
};

} // namespace

TEST_CASE("versions: nodes, ranks and commands of this one leave a coordinator of another one, and say both") {
  for (auto protocol : {protocol_version - 1, protocol_version + 1}) {
    CAPTURE(protocol);
    other_coordinator host{protocol};
    const auto rank = std::vector<std::string>{"env",
                                               "RINGMASTER_WORLD_SIZE=2",
                                               "RINGMASTER_RANK=1",
                                               "RINGMASTER_LOCAL_RANK=1",
                                               "RINGMASTER_COORDINATOR=" + host.where,
                                               RINGMASTER_RANK_PROGRAM,
                                               "sum"};
    std::vector<std::unique_ptr<launched_program>> all;
    for (auto& command : {std::vector<std::string>{RINGMASTER_PROGRAM, "node", "--join", host.where},
                          {RINGMASTER_PROGRAM, "status", host.where},
                          {RINGMASTER_PROGRAM, "info", "--join", host.where},
                          {RINGMASTER_PROGRAM, "bench", "--join", host.where},
                          rank})
      all.push_back(std::make_unique<launched_program>(command));
    for (auto& each : all) {
      CHECK(each->finish() == 1);
      CAPTURE(each->error);
      CHECK(contains(each->error, fmt::format("the coordinator at {} speaks protocol {} of ringmaster, this process "
                                              "protocol {}",
                                              host.where, protocol, protocol_version)));
    }
  }
}

TEST_CASE("versions: one whose connections begin without a greeting is refused at both ends") {
  other_coordinator host;
  launched_program status{{RINGMASTER_PROGRAM, "status", host.where}};
  CHECK(status.finish() == 1);
  CHECK_MESSAGE(contains(status.error, host.where + " is of an older version of Ringmaster"), status.error);
  started_coordinator coordinator;
  const auto there = *parse_endpoint(coordinator.where);
  caf::scoped_actor self{host.system};
  self
    ->request(host.system.middleman().actor_handle(), std::chrono::seconds{10}, caf::connect_atom_v, there.host,
              there.port)
    .receive([](const caf::node_id&, const caf::strong_actor_ptr&,
                const std::set<std::string>&) { FAIL("it was let in"); },
             [](const caf::error&) {});
}

TEST_CASE("versions: a coordinator refuses nodes of another one, says both, and goes on") {
  started_coordinator coordinator;
  configuration cfg;
  REQUIRE_FALSE(cfg.read({}, std::nullopt));
  caf::actor_system system{cfg};
  auto host = connect(system, coordinator.where, std::chrono::seconds{10});
  REQUIRE_MESSAGE(host, render(host.error()));
  caf::scoped_actor self{system};
  for (auto protocol : {0u, protocol_version - 1, protocol_version + 1}) {
    proto::NodeJoinRequest request;
    request.set_name("other");
    request.set_devices(1);
    request.set_protocol(protocol);
    self->request(*host, std::chrono::seconds{10}, request, caf::actor_cast<caf::strong_actor_ptr>(self))
      .receive(
        [&](const proto::NodeJoinResponse& x, const caf::strong_actor_ptr&) {
          CHECK(static_cast<errc>(x.code()) == errc::wrong_version);
          CHECK(contains(x.error(), fmt::format("node other speaks protocol {} of ringmaster, the coordinator protocol "
                                                "{}",
                                                protocol == 0 ? "4 or an older one" : std::to_string(protocol),
                                                protocol_version)));
        },
        [](const caf::error& problem) { FAIL(render(problem)); });
  }
  auto there = client{system, *host}.devices();
  REQUIRE(there);
  CHECK(there->nodes().empty());
}
