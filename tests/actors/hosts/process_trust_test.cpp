// Over real sockets, on loopback.
#include "actors/hosts/process_trust.hpp"

#include "actors/configuration/configuration.hpp"
#include "actors/hosts/connection_watch.hpp"
#include "actors/hosts/connections.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/links/greeting_desk.hpp"
#include "actors/links/socket_greeting.hpp"
#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/support/trusting_process.hpp"

#include <caf/all.hpp>
#include <caf/io/middleman.hpp>
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

std::string secret_file(const temporary_directory& dir, const char* name, char letter) {
  const auto result = (dir.path() / name).string();
  std::ofstream{result} << std::string(40, letter);
  std::filesystem::permissions(result, std::filesystem::perms::owner_read);
  return result;
}

trust_settings by_file(const std::string& file) {
  return {.secret_file = file, .insecure = false};
}

/// The bytes that come until the other end closes the connection; none if it has not within the time.
std::optional<size_t> bytes_until_closed(const open_socket& by, std::chrono::milliseconds limit) {
  std::array<char, 4096> heard;
  size_t result = 0;
  for (auto until = std::chrono::steady_clock::now() + limit;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd waits{by.descriptor, POLLIN, 0};
    if (::poll(&waits, 1, std::max(static_cast<int>(left.count()), 0)) == 0)
      return std::nullopt;
    const auto got = ::recv(by.descriptor, heard.data(), heard.size(), 0);
    if (got <= 0)
      return result;
    result += static_cast<size_t>(got);
  }
}

void tell(const open_socket& whom, std::string_view bytes) {
  REQUIRE(::send(whom.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// Both ends of a TCP connection.
std::pair<open_socket, open_socket> connected_pair() {
  auto door = std::move(*listen_at({"127.0.0.1", 0}));
  const auto where = *parse_endpoint(own_end_text(door.descriptor));
  auto made = std::move(*open_connection(where, 5s));
  pollfd waits{door.descriptor, POLLIN, 0};
  REQUIRE(::poll(&waits, 1, 5000) == 1);
  return {open_socket{::accept4(door.descriptor, nullptr, nullptr, SOCK_CLOEXEC)}, std::move(made)};
}

credentials_ptr some_credentials() {
  static const auto result = credentials::of({role::member, {}, shared_secret::random()}, "a test's");
  return result;
}

/// Runs the desk until it has something, or no stranger waits.
std::vector<greeting_desk::admitted> run_desk(greeting_desk& desk) {
  for (;;) {
    auto result = desk.run();
    if (!result.empty() || desk.waiting() == 0)
      return result;
    pollfd waits{desk.descriptor(), POLLIN, 0};
    REQUIRE(::poll(&waits, 1, 20'000) == 1);
  }
}

} // namespace

TEST_CASE("process trust: who has the secret comes in, and no one else") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const auto right = secret_file(dir, "right", 'a'), wrong = secret_file(dir, "wrong", 'b');
  door_of_process door{by_file(right)};
  auto found = door.enter_as(by_file(right));
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->handle);
  struct {
    trust_settings guest;
    std::string says;
  } const refused[] = {
    {by_file(wrong), "has another secret than this process, which has that of " + wrong},
    {by_file((dir.path() / "none").string()), "requires the secret of its cluster, and this process has none"},
    {{.insecure = true}, "and this process runs with --insecure"},
  };
  for (auto& each : refused) {
    auto problem = door.enter_as(each.guest);
    REQUIRE(!problem);
    CAPTURE(render(problem.error()));
    CHECK(code_of(problem.error()) == errc::unauthenticated);
    CHECK(contains(render(problem.error()), each.says));
  }
  std::filesystem::remove_all(dir.path() / "ringmaster");
  auto unknown = door.enter_as({.insecure = false});
  REQUIRE(!unknown);
  CHECK(contains(render(unknown.error()), "Copy the secret file that the log of the coordinator at 127.0.0.1:"));
  CHECK(door.enter_as(by_file(right))); // as before
}

TEST_CASE("process trust: who has a secret does not go where none is wanted, unless it says so") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  door_of_process door{{.insecure = true}};
  auto problem = door.enter_as(by_file(secret_file(dir, "right", 'a')));
  REQUIRE(!problem);
  CHECK(contains(render(problem.error()), "requires no secret (trust.insecure), so it may be any process"));
  auto without = door.enter_as({.insecure = false});
  REQUIRE(!without);
  CHECK(contains(render(without.error()), "--insecure connects to it all the same"));
  CHECK(door.enter_as({.insecure = true}));
}

TEST_CASE("process trust: the environment has the secret, or its file") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const auto file = secret_file(dir, "right", 'a');
  door_of_process door{by_file(file)};
  std::filesystem::remove_all(dir.path() / "ringmaster");
  ::setenv("RINGMASTER_SECRET_FILE", file.c_str(), 1);
  CHECK(door.enter_as({.insecure = false}));
  ::setenv("RINGMASTER_SECRET", shared_secret::read(file)->text().c_str(), 1);
  ::setenv("RINGMASTER_SECRET_FILE", "/none", 1);
  CHECK(door.enter_as({.insecure = false}));
  ::setenv("RINGMASTER_SECRET", "too short", 1);
  auto problem = door.enter_as({.insecure = false});
  REQUIRE(!problem);
  CHECK(contains(render(problem.error()), "RINGMASTER_SECRET in the environment has 9 bytes"));
}

TEST_CASE("process trust: a coordinator without a secret makes one, which others of its user find by the port") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const trust_settings nothing{.insecure = false};
  std::filesystem::path file;
  uint16_t port = 0;
  {
    door_of_process door{nothing};
    port = door.port;
    file = dir.path() / "ringmaster" / fmt::format("{}.secret", port);
    CHECK(std::filesystem::exists(file));
    auto found = door.enter_as(nothing);
    CHECK_MESSAGE(found, render(found.error()));
  }
  CHECK(std::filesystem::exists(file)); // for the next one there
  auto before = *shared_secret::read(file);
  {
    door_of_process again{{.insecure = false, .port_is_chosen = true}, port};
    CHECK(*shared_secret::read(file) == before);
  }
  CHECK_FALSE(std::filesystem::exists(file)); // no one else gets that port on purpose
}

TEST_CASE("process trust: a coordinator that was given its secret has other commands of its user find it by the port") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const auto given = secret_file(dir, "given", 'a');
  std::filesystem::path file;
  {
    door_of_process door{by_file(given)};
    file = dir.path() / "ringmaster" / fmt::format("{}.secret", door.port);
    CHECK(*shared_secret::read(file) == *shared_secret::read(given));
    CHECK(door.enter_as({.insecure = false}));
  }
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(std::filesystem::exists(given));
}

TEST_CASE("process trust: a coordinator with a journal keeps its secret there, and clients find it by the port") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const auto journal = (dir.path() / "journal").string();
  const trust_settings with_journal{.insecure = false, .journal_dir = journal};
  uint16_t port = 0;
  {
    door_of_process door{with_journal};
    port = door.port;
    CHECK(door.enter_as({.insecure = false}));
  }
  const auto kept = *shared_secret::read(journal + "/secret");
  // Another coordinator has had the port meanwhile.
  const auto file = dir.path() / "ringmaster" / fmt::format("{}.secret", port);
  REQUIRE(!shared_secret::random().replace(file));
  door_of_process again{with_journal, port};
  CHECK(*shared_secret::read(journal + "/secret") == kept);
  CHECK(again.enter_as({.insecure = false}));
  CHECK(again.enter_as(by_file(journal + "/secret")));
}

TEST_CASE("process trust: nodes that wait for a coordinator, and one that lists nodes, have a secret of the user's") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  process_trust node{{.insecure = false}}, coordinator{{.insecure = false, .lists_nodes = true}};
  auto own = node.for_listening(listener_kind::node, 7080);
  auto listing = coordinator.for_listening(listener_kind::coordinator, 7077);
  REQUIRE(own);
  REQUIRE(listing);
  CHECK(*(*own)->secret == *(*listing)->secret);
  const auto to_node = *coordinator.for_connecting({"h", 7080}, listener_kind::node); // which knows it by the role
  CHECK(to_node->own == peer_identity{role::coordinator});
  CHECK(*to_node->secret == derive_secret(*(*own)->secret, role::coordinator, ""));
  process_trust client{{.insecure = false}};
  CHECK(*(*client.for_connecting({"h", 7077}, listener_kind::coordinator))->secret == *(*own)->secret);
}

TEST_CASE("process trust: a secret file that is no good keeps a process from listening, with what is wrong") {
  temporary_directory dir;
  const auto file = secret_file(dir, "open", 'a');
  std::filesystem::permissions(file, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  trusting_process x{by_file(file)};
  auto whom = x.system.spawn([](caf::event_based_actor*, int) -> caf::behavior { return {[](int) {}}; }, 0);
  auto port = listen_for(whom, x.system, "127.0.0.1", 0);
  REQUIRE(!port);
  CHECK(code_of(port.error()) == errc::invalid_argument);
  CHECK(contains(render(port.error()), "so other users can read or change it: chmod 600 " + file));
  caf::anon_send_exit(whom, caf::exit_reason::user_shutdown);
}

TEST_CASE("process trust: what has not proved the secret gets not a byte of CAF's protocol, and is closed") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const auto file = secret_file(dir, "right", 'a');
  door_of_process door{by_file(file)};
  std::string old_greeting(32, '\0'); // of CAF, with a content of 22 bytes
  old_greeting[0] = 1;
  old_greeting[7] = 22;
  const std::string_view strangers[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        std::string_view{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11},
                                        old_greeting, "ringlink and so on", "SSH-2.0-OpenSSH_9.2"};
  for (auto each : strangers) {
    CAPTURE(each);
    auto visitor = door.visitor();
    tell(visitor, each);
    const auto heard = bytes_until_closed(visitor, 2s); // sooner than the limit on silence
    REQUIRE(heard);
    CHECK(*heard <= challenge_bytes + verdict_bytes);
  }
  CHECK(door.enter_as(by_file(file)));
}

TEST_CASE("process trust: 100 that connect and say nothing keep no one out, and most of them wait no longer") {
  temporary_directory dir;
  const variables_of_trust variables{dir.path()};
  const auto file = secret_file(dir, "right", 'a');
  door_of_process door{by_file(file)};
  std::vector<open_socket> silent;
  for (int i = 0; i < 100; ++i)
    silent.push_back(door.visitor());
  const auto began = std::chrono::steady_clock::now();
  auto found = door.enter_as(by_file(file));
  CHECK_MESSAGE(found, render(found.error()));
  CHECK(std::chrono::steady_clock::now() - began < 2s); // the silent ones may take 3 s
  int closed = 0;
  for (auto& each : silent)
    closed += bytes_until_closed(each, 0ms).has_value();
  CHECK(closed >= 36);
}

TEST_CASE("greeting desk: one that is silent goes in time, and one that is slow has time") {
  auto desk = std::move(*greeting_desk::make(some_credentials(), listener_kind::node, {.greeting = 200ms}));
  std::vector<greeting_refusal> refused;
  desk->when_refused([&](greeting_refusal x) { refused.push_back(x); });
  auto [accepted, silent] = connected_pair();
  auto [other_accepted, slow] = connected_pair();
  desk->take(std::move(accepted));
  CHECK(desk->waiting() == 1);
  CHECK(run_desk(*desk).empty());
  CHECK(refused == std::vector{greeting_refusal::too_slow});
  CHECK(bytes_until_closed(silent, 5s) == challenge_bytes + verdict_bytes);
  desk->take(std::move(other_accepted));
  socket_greeting greeting{[] { return caf::expected<credentials_ptr>{some_credentials()}; }, listener_kind::node,
                           "it"};
  pollfd waits{slow.descriptor, POLLIN, 0};
  REQUIRE(::poll(&waits, 1, 5000) == 1);
  REQUIRE(!greeting.advance(slow.descriptor)); // has answered
  auto admitted = run_desk(*desk);
  REQUIRE(admitted.size() == 1);
  REQUIRE(::poll(&waits, 1, 5000) == 1);
  auto done = greeting.advance(slow.descriptor);
  REQUIRE(done);
  REQUIRE(*done);
  CHECK((*done)->with.key == admitted.front().with.key);
  CHECK(admitted.front().with.peer == peer_identity{role::member});
  CHECK(desk->waiting() == 0);
}

TEST_CASE("greeting desk: of too many the oldest goes, and each is counted with its reason") {
  auto desk = std::move(*greeting_desk::make(some_credentials(), listener_kind::node,
                                             {.greeting = 1h, .strangers_max = 2}));
  std::vector<greeting_refusal> refused;
  desk->when_refused([&](greeting_refusal x) { refused.push_back(x); });
  std::vector<open_socket> visitors;
  for (int i = 0; i < 3; ++i) {
    auto [accepted, visitor] = connected_pair();
    desk->take(std::move(accepted));
    visitors.push_back(std::move(visitor));
    CHECK(desk->waiting() <= 2);
  }
  CHECK(refused == std::vector{greeting_refusal::too_many});
  CHECK(bytes_until_closed(visitors[0], 5s) == challenge_bytes + verdict_bytes);
  CHECK_FALSE(bytes_until_closed(visitors[1], 0ms));
  visitors[1] = {};
  tell(visitors[2], "GET / HTTP/1.0\r\n\r\n");
  CHECK(run_desk(*desk).empty());
  std::ranges::sort(refused);
  CHECK(refused == std::vector{greeting_refusal::cut_short, greeting_refusal::too_many, greeting_refusal::http});
}

TEST_CASE("greeting desk: of what follows the greeting it reads nothing") {
  auto desk = std::move(*greeting_desk::make(some_credentials(), listener_kind::node));
  auto [accepted, visitor] = connected_pair();
  desk->take(std::move(accepted));
  greeting_initiator state{[] { return caf::expected<credentials_ptr>{some_credentials()}; }, listener_kind::node,
                           "it"};
  std::array<std::byte, challenge_bytes> challenge;
  REQUIRE(::recv(visitor.descriptor, challenge.data(), challenge.size(), MSG_WAITALL) == challenge_bytes);
  auto answer = std::get<greeting_initiator::answer>(state.take(challenge)).bytes;
  std::string both{reinterpret_cast<const char*>(answer.data()), answer.size()};
  tell(visitor, both + "behind");
  auto admitted = run_desk(*desk);
  REQUIRE(admitted.size() == 1);
  std::array<char, 16> left;
  CHECK(::recv(admitted.front().socket.descriptor, left.data(), left.size(), MSG_DONTWAIT) == 6);
}
