// Strangers at every port of a coordinator and a node of their own processes, and a client that works meanwhile.
#include "actors/configuration/configuration.hpp"
#include "actors/links/sockets.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "runtime/trust/greeting.hpp"
#include "runtime/trust/secret.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <caf/all.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <poll.h>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::launch;
using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

/// The TCP ports at which a process listens.
std::vector<uint16_t> listening_ports(pid_t pid) {
  const auto process = fmt::format("/proc/{}", pid);
  std::set<std::string> sockets;
  for (const auto& each : std::filesystem::directory_iterator{process + "/fd"}) {
    std::error_code gone;
    sockets.insert(std::filesystem::read_symlink(each.path(), gone).string());
  }
  std::set<uint16_t> result;
  for (const auto* family : {"tcp", "tcp6"}) {
    std::ifstream table{process + "/net/" + family};
    std::string line, place, local, remote, state, skipped, inode;
    for (std::getline(table, line); std::getline(table, line);) {
      std::istringstream words{line};
      words >> place >> local >> remote >> state;
      for (int i = 0; i < 5; ++i)
        words >> skipped;
      words >> inode;
      if (state == "0A" && sockets.contains("socket:[" + inode + "]"))
        result.insert(static_cast<uint16_t>(std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16)));
    }
  }
  return {result.begin(), result.end()};
}

uint64_t resident_bytes(pid_t pid) {
  std::ifstream file{fmt::format("/proc/{}/statm", pid)};
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

open_socket connected_to(uint16_t port) {
  const auto there = *numeric_address({"127.0.0.1", port});
  open_socket result{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  return ::connect(result.descriptor, there.get(), there.size) == 0 ? std::move(result) : open_socket{};
}

void say(const open_socket& to, std::string_view bytes) {
  (void)::send(to.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL); // it may be closed already
}

/// What comes, at most that much, until the other end closes or nothing comes for some seconds.
std::string hear(const open_socket& from, size_t most, bool& closed) {
  std::string result(most, '\0');
  size_t got = 0;
  closed = false;
  for (pollfd waits{from.descriptor, POLLIN, 0}; got<most&& ::poll(&waits, 1, 10'000)> 0;) {
    const auto count = ::recv(from.descriptor, result.data() + got, most - got, 0);
    closed = count <= 0;
    if (closed)
      break;
    got += static_cast<size_t>(count);
  }
  result.resize(got);
  return result;
}

template <size_t Size>
std::string chars_of(const std::array<std::byte, Size>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A connection of a process that knows the secret, and the answer by which it was admitted.
struct admitted_connection {
  open_socket socket;
  std::string answer;
};

admitted_connection admitted_at(uint16_t port, const credentials_ptr& own) {
  auto socket = connected_to(port);
  bool closed = false;
  const auto challenge = hear(socket, challenge_bytes, closed);
  REQUIRE(challenge.size() == challenge_bytes);
  greeting_initiator initiator{[own] { return caf::expected<credentials_ptr>{own}; },
                               static_cast<listener_kind>(challenge[14]), "the port"};
  auto step = initiator.take(std::as_bytes(std::span{challenge}));
  REQUIRE(std::holds_alternative<greeting_initiator::answer>(step));
  auto answer = chars_of(std::get<greeting_initiator::answer>(step).bytes);
  say(socket, answer);
  const auto verdict = hear(socket, verdict_bytes, closed);
  REQUIRE(verdict.size() == verdict_bytes);
  REQUIRE(verdict.front() == 1);
  return {std::move(socket), std::move(answer)};
}

/// What strangers send to the port.
std::vector<std::string> foreign_bytes(const std::string& answer) {
  std::minstd_rand random{7};
  std::string noise(300, '\0'), huge_length(36, '\0'), other_version = answer;
  std::ranges::generate(noise, [&] { return static_cast<char>(random()); });
  huge_length.replace(4, 4, "\xff\xff\xff\xff"); // a greeting of CAF with 4 GiB
  other_version[8] = 9;
  std::string ones(answer_bytes, '\xff');
  return {noise,
          "",
          answer, // replayed
          answer.substr(0, 40),
          answer + std::string(4096, 'x'),
          other_version,
          "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
          std::string{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11} + noise,
          "ringlink" + std::string(16, '\1'),
          huge_length,
          ones,
          "ring-ans" + std::string(answer_bytes - 8, '\xff')};
}

/// A port, and what has become of those that came to it.
struct attacked_port {
  uint16_t number = 0;
  std::string answer; ///< That was recorded.
  uint64_t visits = 0;
  uint64_t left_open = 0; ///< Or given more than a challenge and a verdict.

  void visit(std::string_view bytes) {
    const auto socket = connected_to(number);
    if (socket.descriptor < 0)
      return;
    ++visits;
    say(socket, bytes);
    ::shutdown(socket.descriptor, SHUT_WR);
    bool closed = false;
    constexpr size_t most = challenge_bytes + verdict_bytes;
    left_open += hear(socket, most + 1, closed).size() > most || !closed;
  }
};

/// How long a client's calls took.
struct call_times {
  clock_type::duration median, p99, longest;

  std::string text() const {
    using std::chrono::duration;
    return fmt::format("{:.2f} ms in the median, {:.2f} ms at p99, {:.2f} ms at most",
                       duration<double, std::milli>{median}.count(), duration<double, std::milli>{p99}.count(),
                       duration<double, std::milli>{longest}.count());
  }
};

/// A coordinator and a node, each a process, that use bulk connections.
struct attacked_cluster {
  attacked_cluster() {
    REQUIRE(!shared_secret::random().create(secret_file));
    coordinator.emplace(std::vector<std::string>{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--port-file",
                                                 port_file, "--secret-file", secret_file, "--route.use=link"});
    REQUIRE(coordinator->wait_until([&] { return std::filesystem::exists(port_file); }));
    std::string port;
    std::ifstream{port_file} >> port;
    where = "127.0.0.1:" + port;
    node.emplace(std::vector<std::string>{RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "1", "--name",
                                          "one", "--secret-file", secret_file, "--route.use=link"});
    REQUIRE_FALSE(settings.read(std::vector<std::string>{"--trust.secret-file=" + secret_file}, std::nullopt));
    system.emplace(settings);
    auto found = connect(*system, where, 10s);
    REQUIRE_MESSAGE(found, render(found.error()));
    user.emplace(*system, *found);
    REQUIRE(node->wait_until([&] {
      const auto info = user->info();
      return info && info->devices_size() == 1;
    }));
  }

  call_times time_calls(size_t calls) {
    std::vector<clock_type::duration> times;
    while (times.size() < calls) {
      const auto began = clock_type::now();
      REQUIRE(user->info());
      times.push_back(clock_type::now() - began);
      std::this_thread::sleep_for(2ms);
    }
    std::ranges::sort(times);
    return {times[calls / 2], times[calls * 99 / 100], times.back()};
  }

  temporary_directory dir;
  const std::string port_file = (dir.path() / "port").string(), secret_file = (dir.path() / "secret").string();
  std::optional<launched_program> coordinator, node;
  std::string where;
  configuration settings;
  std::optional<caf::actor_system> system;
  std::optional<client> user;
};

size_t lines_with(const std::string& text, const std::string& part) {
  size_t result = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++result;
  return result;
}

/// The last "N in all" of the reports about a port.
uint64_t refusals_reported(const std::string& log, uint16_t port) {
  const auto at = log.rfind(fmt::format(":{} (", port));
  const auto end = log.find(" in all)", at);
  if (at == std::string::npos || end == std::string::npos)
    return 0;
  const auto start = log.rfind(' ', end - 1) + 1;
  uint64_t result = 0;
  std::from_chars(log.data() + start, log.data() + end, result);
  return result;
}

} // namespace

TEST_CASE("foreign bytes: at every port they are refused, counted, logged once a second, and delay no one") {
  attacked_cluster cluster;
  const auto own = credentials::of({role::member, {}, *shared_secret::read(cluster.secret_file)}, cluster.secret_file);
  launched_program* const programs[] = {&*cluster.coordinator, &*cluster.node};
  for (auto* program : programs) {
    const auto ports = listening_ports(program->child.pid());
    REQUIRE_FALSE(ports.empty());
    std::vector<attacked_port> attacked;
    for (const auto port : ports)
      attacked.push_back({port, admitted_at(port, own).answer});
    const auto usual = cluster.time_calls(400);
    const auto memory = resident_bytes(program->child.pid());
    const auto began = clock_type::now();
    std::vector<std::jthread> strangers;
    for (auto& port : attacked)
      strangers.emplace_back([&port](const std::stop_token& stop) {
        for (const auto all = foreign_bytes(port.answer); !stop.stop_requested();)
          for (const auto& each : all) {
            port.visit(each);
            std::this_thread::sleep_for(1ms);
          }
      });
    const auto under_attack = cluster.time_calls(400);
    strangers.clear();                                // each finishes what it is at
    CHECK(under_attack.median < usual.median + 10ms); // the longest depends on what else runs on this machine
    MESSAGE("a client's calls: ", usual.text(), "; under attack of ", ports.size(), " ports: ", under_attack.text());
    CHECK(resident_bytes(program->child.pid()) < memory + (32u << 20));
    const auto seconds = static_cast<size_t>((clock_type::now() - began) / 1s);
    for (auto& port : attacked) {
      CAPTURE(port.number);
      CHECK(port.visits > 26);
      CHECK(port.left_open == 0);
      // The next report has the count, which is due a second after the last one.
      const auto visits = port.visits;
      CHECK(program->wait_until([&] {
        const bool are_counted = refusals_reported(program->error, port.number) >= visits;
        if (!are_counted)
          port.visit("GET / HTTP/1.1\r\n\r\n");
        return are_counted;
      }));
      CHECK(lines_with(program->error, fmt::format(":{} (", port.number)) <= seconds + 4);
    }
  }
  CHECK(cluster.user->info());
}

TEST_CASE(
  "foreign bytes: of a process that was admitted, lengths that nothing has end its connection and reserve nothing") {
  attacked_cluster cluster;
  const auto own = credentials::of({role::member, {}, *shared_secret::read(cluster.secret_file)}, cluster.secret_file);
  for (auto* program : {&*cluster.coordinator, &*cluster.node}) {
    const auto memory = resident_bytes(program->child.pid());
    for (const auto port : listening_ports(program->child.pid()))
      for (const auto* bytes : {"\1", "\0", "ringlink", "\xff"}) { // greetings of CAF, a bulk connection's, none
        std::string header{bytes, std::max<size_t>(std::strlen(bytes), 1)};
        header.resize(40, '\xff');
        const auto connection = admitted_at(port, own);
        say(connection.socket, header);
        bool closed = false;
        hear(connection.socket, 1 << 16, closed); // with the greeting of CAF, which has the interface in it
        CHECK(closed);
      }
    CHECK(resident_bytes(program->child.pid()) < memory + (32u << 20));
    CHECK_MESSAGE(program->await_output("what is no message of CAF's protocol"), program->error);
  }
  CHECK(cluster.user->info());
}
