// The table of permissions against the interfaces of actors, and frames over real sockets, on loopback.
#include "actors/trust/frame_guard.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connection_watch.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/links/socket_greeting.hpp"
#include "messages/interfaces.hpp"
#include "tests/support/text_search.hpp"

#include <caf/all.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/io/basp/header.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <poll.h>
#include <set>
#include <string>
#include <sys/socket.h>

using namespace ringmaster;
using namespace std::chrono_literals;
using caf::io::basp::message_type;
using ringmaster::test::contains;

namespace {

struct plain_process {
  struct configuration : caf::actor_system_config {
    configuration() {
      set("scheduler.max-threads", 1);
      load<watched_middleman>();
      add_messages(*this);
    }
  };

  configuration settings;
  caf::actor_system system{settings};
};

/// "gpu_sim::DeviceId+ringmaster::proto::FaultRequest" of "caf::replies_to<...>::with<...>".
std::string inputs_in(const std::string& signature) {
  const std::string start = "caf::replies_to<", end = ">::with<";
  auto result = signature.substr(start.size(), signature.find(end) - start.size());
  std::ranges::replace(result, ',', '+');
  return result;
}

/// Our atoms, which actors send to themselves, are named in signatures as they are, and "@atom" in messages.
bool is_for_itself(const std::string& types) {
  const auto first = types.substr(0, types.find('+'));
  return std::ranges::any_of(std::array{"tick", "resume", "flush", "expire", "recorded"},
                             [&](const std::string& atom) { return first.find(atom) != first.npos; });
}

template <class Actor>
std::set<std::string> inputs_of(const caf::actor_system& system) {
  std::set<std::string> result;
  for (auto& each : system.message_types<Actor>())
    result.insert(inputs_in(each));
  return result;
}

/// A process with an actor of this name that counts what it gets, at a port; and a connection that was greeted, over
/// which bytes are written by hand.
struct visited_process : plain_process {
  struct counting_state {
    static inline const char* name = "counter";
    int got = 0;
  };

  visited_process() {
    auto count = [](caf::stateful_actor<counting_state>* self, int) -> caf::behavior {
      return {[self](int) { return ++self->state.got; }};
    };
    actor = system.spawn(count, 0);
    port = *listen_for(actor, system, "127.0.0.1", 0);
    visitor = std::move(*open_connection({"127.0.0.1", port}, 5s));
    socket_greeting nothing_to_prove{[] { return caf::expected<credentials_ptr>{no_credentials()}; },
                                     listener_kind::coordinator, "it"};
    REQUIRE(greet(visitor.descriptor, std::move(nothing_to_prove), [] { return caf::error{}; }));
    write(frame(message_type::client_handshake, 0, 0, 0, 0, id));
    hear(); // its own greeting, and what CAF asks each process
  }
  ~visited_process() { caf::anon_send_exit(actor, caf::exit_reason::kill); }

  template <class... Ts>
  std::string frame(message_type kind, uint8_t flags, uint64_t operation, uint64_t from, uint64_t to,
                    const Ts&... content) {
    std::vector<char> body, head;
    caf::binary_serializer sink{system, body};
    REQUIRE_FALSE(sink(content...));
    caf::binary_serializer header{system, head};
    caf::io::basp::header it{kind, flags, static_cast<uint32_t>(body.size()), operation, from, to};
    REQUIRE_FALSE(header(it));
    return std::string{head.begin(), head.end()} + std::string{body.begin(), body.end()};
  }

  /// A message to the actor, or to one of CAF.
  std::string message(const caf::message& what, uint64_t to, uint8_t flags = 0,
                      uint64_t category = caf::message_id::normal_message_category) {
    const uint64_t request = (category << caf::message_id::category_offset) | 1;
    return frame(message_type::direct_message, flags, request, 77, to, std::vector<caf::strong_actor_ptr>{}, what);
  }

  void write(const std::string& bytes) const {
    REQUIRE(::send(visitor.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }

  /// What comes until nothing does for a while.
  std::string hear() const {
    std::string result;
    std::array<char, 4096> buffer;
    for (pollfd waits{visitor.descriptor, POLLIN, 0}; ::poll(&waits, 1, 200) == 1;) {
      const auto got = ::recv(visitor.descriptor, buffer.data(), buffer.size(), 0);
      if (got <= 0)
        return result + "closed";
      result.append(buffer.data(), static_cast<size_t>(got));
    }
    return result;
  }

  /// How often the actor was reached before this.
  int reached() {
    caf::scoped_actor self{system};
    int result = 0;
    self->request(actor, 10s, 0).receive([&](int got) { result = got; }, [](const caf::error& x) { FAIL(render(x)); });
    return result - 1;
  }

  const caf::node_id id = *caf::make_node_id(4711, std::string(40, 'b'));
  caf::actor actor;
  uint16_t port = 0;
  open_socket visitor;
};

} // namespace

TEST_CASE("frame guard: the table names messages as CAF does, and what it lacks is between actors of one process") {
  plain_process x;
  const std::map<std::string, std::set<std::string>> interfaces{
    {"coordinator", inputs_of<coordinator_actor>(x.system)},
    {"communicator", inputs_of<communicator_actor>(x.system)},
    {"journal", inputs_of<journal_actor>(x.system)},
    {"node", inputs_of<node_actor>(x.system)},
    {"relay_entrance", inputs_of<relay_actor>(x.system)},
    {"device", inputs_of<device_actor>(x.system)},
    {"stream", inputs_of<stream_actor>(x.system)}};
  std::map<std::string, std::set<std::string>> rest = interfaces;
  for (auto& row : permission_rows()) {
    CAPTURE(row.receiver);
    CAPTURE(row.types);
    REQUIRE(interfaces.contains(std::string{row.receiver}));
    CHECK(interfaces.at(std::string{row.receiver}).contains(std::string{row.types}));
    CHECK(rest[std::string{row.receiver}].erase(std::string{row.types}) == 1); // once
  }
  for (auto& [receiver, left] : rest)
    std::erase_if(left, [&](auto& types) { return is_for_itself(types); });
  const std::string proto = "ringmaster::proto::", course = "gpu_sim::";
  CHECK(rest["coordinator"]
        == std::set{proto + "MemberLost", proto + "ProbeRequest", proto + "SpareRequest", proto + "OutputsWritten"});
  CHECK(rest["communicator"]
        == std::set{course + "GetCommStatusRequest", course + "GroupStartRequest", course + "GroupEndRequest",
                    proto + "CollectiveRequest", proto + "CollectiveRequests", proto + "RankCall",
                    proto + "CommunicatorStatusRequest", proto + "CommWaitRequest", proto + "CommAbortRequest",
                    proto + "CommDestroyRequest", proto + "WayLost", proto + "CallsAcknowledged", proto + "MemberLost",
                    proto + "LeaveRequest"});
  CHECK(rest["journal"] == std::set{proto + "JournalFlushRequest", proto + "JournalTailRequest"});
  CHECK(rest["node"].empty());
  CHECK(rest["device"] == std::set{course + "StreamId+" + course + "GetStreamStatusResponse"});
}

TEST_CASE("frame guard: a message is let through, and one that the runtime obeys is not") {
  visited_process x;
  x.write(x.message(caf::make_message(1), x.actor.id()));
  CHECK(contains(x.hear(), "@<>+@i32")); // the answer
  CHECK(x.reached() == 1);
  const auto whom = x.actor.id();
  const auto exit = caf::make_message(caf::exit_msg{x.actor.address(), caf::exit_reason::kill});
  const auto down = caf::make_message(caf::down_msg{x.actor.address(), caf::exit_reason::kill});
  const auto link = caf::make_message(caf::link_atom_v, caf::actor_cast<caf::strong_actor_ptr>(x.actor));
  for (auto& what : {exit, down, link, caf::make_message(make_error(errc::refused, "x"))}) {
    x.write(x.message(what, whom));
    const auto answer = x.hear();
    CHECK(contains(answer, "no other process may send @"));
    CHECK_FALSE(contains(answer, "closed"));
  }
  for (const uint64_t category : {2, 3}) { // of CAF's streams, which read the content as what it should be
    x.write(x.message(caf::make_message(1), whom, 0, category));
    CHECK(x.hear().empty());
  }
  CHECK(x.reached() == 2);
}

TEST_CASE("frame guard: CAF's own actors are not reached by their names") {
  visited_process x;
  constexpr auto named = caf::io::basp::header::named_receiver_flag;
  const auto ask = caf::make_message(caf::get_atom_v, std::string{"scheduler.max-threads"});
  for (const auto name : {caf::atom("ConfigServ"), caf::atom("SpawnServ")}) {
    x.write(x.message(ask, static_cast<uint64_t>(name), named));
    CHECK(x.hear().empty());
  }
  x.write(x.message(caf::make_message(1), x.actor.id()));
  CHECK(contains(x.hear(), "@<>+@i32")); // the connection is as it was
}

TEST_CASE("frame guard: what is no message of CAF is dropped, and the connection goes on") {
  visited_process x;
  for (const auto& content : {std::string{}, std::string{"x"}, std::string(200, '\xff'), std::string(3, '\0')}) {
    if (content.empty())
      continue; // which CAF itself refuses
    auto bytes = x.frame(message_type::direct_message, 0, 0, 77, x.actor.id());
    bytes[7] = static_cast<char>(content.size());
    x.write(bytes + content);
  }
  x.write(x.message(caf::make_message(1), x.actor.id()));
  CHECK(contains(x.hear(), "@<>+@i32"));
}

TEST_CASE("frame guard: a process that may not do everything speaks for itself only") {
  plain_process here, third;
  peer_directory peers;
  const auto own = *caf::make_node_id(1, std::string(40, 'c')), other = *caf::make_node_id(2, std::string(40, 'd'));
  auto& broker = dynamic_cast<caf::io::basp_broker&>(*caf::actor_cast<caf::abstract_actor*>(
    here.system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"))));
  const auto admits = [&](role as, message_type kind, const caf::node_id& from) {
    frame_guard guard{peers, own, {{as}, "here:1", "own"}};
    std::vector<char> content;
    caf::binary_serializer sink{here.system, content};
    REQUIRE_FALSE(sink(from, third.system.node(), std::vector<caf::strong_actor_ptr>{},
                       caf::make_message(proto::Records{})));
    const caf::io::basp::header header{kind, 0, static_cast<uint32_t>(content.size()), 0, 5, 6};
    return guard.admits(broker, header, content, nullptr);
  };
  for (const auto kind : {message_type::routed_message, message_type::down_message, message_type::monitor_message}) {
    CHECK(admits(role::node, kind, own));
    CHECK_FALSE(admits(role::node, kind, other));
    CHECK_FALSE(admits(role::client, kind, other));
    CHECK(admits(role::member, kind, other));
  }
  CHECK_FALSE(admits(role::client, message_type::routed_message, own)); // clients have no one to write to but us
  CHECK(admits(role::client, message_type::monitor_message, own));
}

TEST_CASE("peer directory: a process is known while it has a connection, and for some time after it") {
  peer_directory x;
  const auto id = *caf::make_node_id(1, std::string(40, 'c'));
  x.connected(id, {{role::client, "alice"}, "here:1", "it"});
  x.connected(id, {{role::client, "alice"}, "here:2", "it"});
  REQUIRE(x.find(id));
  CHECK(x.find(id)->address == "here:2");
  x.disconnected(id);
  x.disconnected(id);
  CHECK(x.find(id));
  for (uint32_t i = 0; i < peer_directory::left_max; ++i) {
    const auto other = *caf::make_node_id(i, std::string(40, 'd'));
    x.connected(other, {});
    x.disconnected(other);
  }
  CHECK_FALSE(x.find(id));
  CHECK(x.find(*caf::make_node_id(1, std::string(40, 'd'))));
  int reports = 0;
  x.when_refused([&](const refused_message& each) {
    ++reports;
    CHECK(each.unreported == 0);
  });
  for (int i = 0; i < 100; ++i)
    x.refused({{role::observer}, "here:3", "it"}, "why");
  CHECK(reports == 1); // within the second
}
