// Real processes, real sockets, real signals: what the simulated clusters cannot cover.
#include "runtime/text/json_field.hpp"
#include "tests/faults/started_coordinator.hpp"
#include "tests/support/processes/kill_coordinator.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <set>
#include <sys/socket.h>
#include <thread>

using namespace ringmaster::launch;

namespace {

/// Four nodes with two devices each, and the program.
std::vector<std::string> under_caf_run(std::vector<std::string> program) {
  std::vector<std::string> result{RINGMASTER_CAF_RUN, "--binary", RINGMASTER_PROGRAM, "--local", "4", "--"};
  result.insert(result.end(), program.begin(), program.end());
  return result;
}

/// Accepts connections at a free port of loopback, and sends nothing.
struct silent_listener {
  silent_listener() {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    REQUIRE(::bind(listens.get(), reinterpret_cast<sockaddr*>(&own), size) == 0);
    REQUIRE(::listen(listens.get(), 8) == 0);
    REQUIRE(::getsockname(listens.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0);
    port = ::ntohs(own.sin_port);
  }

  bool await_caller() const {
    pollfd comes{listens.get(), POLLIN, 0};
    return ::poll(&comes, 1, static_cast<int>(std::chrono::milliseconds{launched_program::limit}.count())) == 1;
  }

  /// From now on what comes is dropped, as if the host were not there.
  void fill() {
    REQUIRE(::listen(listens.get(), 0) == 0);
    sockaddr_in there{};
    socklen_t size = sizeof there;
    REQUIRE(::getsockname(listens.get(), reinterpret_cast<sockaddr*>(&there), &size) == 0);
    REQUIRE(::connect(fills.get(), reinterpret_cast<sockaddr*>(&there), size) == 0);
  }
  /// Waits until a further connection is tried.
  bool await_dropped() const {
    constexpr auto sent = "02"; // the system's number of a connection that has asked and has no answer
    auto wanted = fmt::format(":{:04X} {}", port, sent);
    for (auto until = std::chrono::steady_clock::now() + launched_program::limit;
         std::chrono::steady_clock::now() < until; std::this_thread::yield()) {
      std::ifstream table{"/proc/net/tcp"};
      std::string all{std::istreambuf_iterator<char>{table}, {}};
      if (all.find(wanted) != std::string::npos)
        return true;
    }
    return false;
  }

  unique_fd listens{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  unique_fd fills{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  uint16_t port = 0;
};

/// A free port of loopback, for a program that will listen there.
struct held_port {
  held_port() {
    const int on = 1;
    REQUIRE(::setsockopt(held.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    REQUIRE(::bind(held.get(), reinterpret_cast<sockaddr*>(&own), size) == 0);
    REQUIRE(::getsockname(held.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0);
    number = ::ntohs(own.sin_port);
  }

  unique_fd held{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  uint16_t number = 0;
};

/// What stands between `before` and the end of the word.
std::string word_after(const std::string& text, const std::string& before) {
  auto start = text.find(before);
  if (start == std::string::npos)
    return {};
  start += before.size();
  return text.substr(start, text.find_first_of(" \n", start) - start);
}

} // namespace

TEST_CASE("processes: the demo is right on the devices of four nodes, and leaves the cluster as it was") {
  auto story = R"("$0" demo --elements 20000 --seed 3; "$0" info)";
  launched_program run{under_caf_run({"sh", "-c", story, RINGMASTER_PROGRAM})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CAPTURE(run.output);
  for (auto said : {"a cluster of several processes, 8 simulated devices", "8 ranks: 4 nodes of 2 on 1 host",
                    "epoch 2 on 7 devices", "Every result was right.", "4 nodes, 8 devices (8 free), 0 communicators"})
    CHECK(run.output.find(said) != std::string::npos);
}

TEST_CASE("processes: a coordinator that is killed again and again is restarted, and no result is lost or wrong") {
  launched_program run{{RINGMASTER_CAF_RUN, "--binary", RINGMASTER_PROGRAM, "--local", "2", "--devices-per-node", "2",
                        "--", RINGMASTER_COORDINATOR_KILLS, "3", "ring", "separate"}};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CAPTURE(run.output);
  for (auto said : {"3 kills: ", " rounds right, 0 failed", " with 4 ranks"})
    CHECK(run.output.find(said) != std::string::npos);
}

TEST_CASE("processes: a training goes on across kills of the coordinator, with the losses of one without kills") {
  const auto story = R"("$0" train --ranks 4 --epochs 4 | while read -r line; do
                          echo "$line"
                          case $line in "epoch 1/"* | "epoch 2/"*))"
                     + std::string{ringmaster::test::kill_coordinator} + ";; esac; done";
  launched_program killed{{RINGMASTER_CAF_RUN, "--binary", RINGMASTER_PROGRAM, "--local", "2", "--devices-per-node",
                           "2", "--", "sh", "-c", story, RINGMASTER_PROGRAM}};
  launched_program quiet{{RINGMASTER_PROGRAM, "train", "--ranks", "4", "--epochs", "4"}};
  CHECK(killed.finish() == 0);
  CHECK(quiet.finish() == 0);
  CAPTURE(killed.error);
  CAPTURE(killed.output);
  const auto first = killed.output.find("it was killed");
  REQUIRE(first != std::string::npos);
  CHECK(killed.output.find("it was killed", first + 1) != std::string::npos);
  for (auto epoch : {"epoch 1/4", "epoch 2/4", "epoch 3/4", "epoch 4/4"}) {
    const auto losses_of = [&](const std::string& output) {
      const auto start = output.find(epoch);
      REQUIRE(start != std::string::npos);
      return output.substr(start, output.find("k samples", start) - start);
    };
    const auto losses = losses_of(quiet.output);
    CHECK(losses_of(killed.output).substr(0, losses.rfind("  ")) == losses.substr(0, losses.rfind("  ")));
  }
}

TEST_CASE("processes: the bench takes the devices that are there, and says on which node each rank is") {
  ringmaster::test::temporary_directory dir;
  auto file = (dir.path() / "rows").string();
  launched_program run{{RINGMASTER_CAF_RUN, "--binary", RINGMASTER_PROGRAM, "--local", "2", "--", RINGMASTER_PROGRAM,
                        "bench", "--samples", "1", "--max-bytes", "64", "--json", file}};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CAPTURE(run.output);
  for (auto said : {"# all_reduce on 4 devices", "# 4 ranks: 2 nodes of 2 on 1 host", "# ranks 2-3 on node-",
                    "# every result was right"})
    CHECK(run.output.find(said) != std::string::npos);
  std::ifstream rows{file};
  uint64_t count = 0;
  for (std::string line; std::getline(rows, line); ++count) {
    auto row = ringmaster::parse_json(line);
    REQUIRE(row);
    ringmaster::json_field fields{file, *row};
    CHECK(fields.at("wrong").number(0));
    CHECK(*fields.at("layout").text() == "4 ranks: 2 nodes of 2 on 1 host");
    CHECK(fields.at("ranks").list()->at(3).at("node").text()->starts_with("node-"));
  }
  CHECK(count == 2); // 8 and 64 bytes
}

TEST_CASE("processes: tune measures between the ranks of a cluster, and says what it leaves out") {
  launched_program run{{RINGMASTER_CAF_RUN, "--binary", RINGMASTER_PROGRAM, "--local", "2", "--devices-per-node", "1",
                        "--", RINGMASTER_PROGRAM, "tune", "--repeats=1", "--samples=1", "--max-bytes=8", "--check"}};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CAPTURE(run.output);
  for (auto said :
       {"2 ranks: 2 nodes of 1 on 1 host\n", "not measured: the constants of a single process, local-* and joint-*",
        "all_reduce, 2 ranks between processes, 8 B", "\nThe constants are those of "})
    CHECK(run.output.find(said) != std::string::npos);
}

TEST_CASE("processes: a command that calls for all ranks is no rank") {
  for (std::string command : {"bench", "tune", "demo"}) {
    launched_program run{{"env", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                          "OMPI_COMM_WORLD_LOCAL_SIZE=2", RINGMASTER_PROGRAM, command}};
    CHECK(run.finish() == 2);
    CAPTURE(run.error);
    CHECK(run.error.find(command + ": this command calls for all ranks, and Open MPI has started it as rank 1 of")
          != std::string::npos);
  }
}

TEST_CASE("processes: a communicator whose client has exited is destroyed by its number") {
  launched_program run{
    under_caf_run({"sh", "-c", "\"$0\" info --json; \"$0\" destroy 1; \"$0\" destroy all", RINGMASTER_PROGRAM})};
  CHECK(run.finish() == 0);
  CHECK(run.output.find("\"name\":\"node-4\"") != std::string::npos);
  CHECK(run.error.find("there is no communicator 1") != std::string::npos);
  CHECK(run.output.find("there is no communicator\n") != std::string::npos);
}

TEST_CASE("processes: what a client has taken is free again when it is killed") {
  auto story = R"("$0" bench --samples 10000 --max-bytes 64 >&2 & client=$!
                  until "$0" info | grep -q '(0 free)'; do :; done
                  kill -9 $client
                  until "$0" info | grep -q '(8 free), 0 communicators'; do :; done
                  echo released)";
  launched_program run{under_caf_run({"sh", "-c", story, RINGMASTER_PROGRAM})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CHECK(run.output == "released\n");
}

TEST_CASE("processes: the devices that a killed node took with it are reported once") {
  auto story = R"("$0" bench --samples 10000 --max-bytes 64 >&2 &
                  until "$0" info | grep -q '(0 free)'; do :; done
                  kill -9 $("$0" info | sed -n 's/^node-3, process \([0-9]*\).*/\1/p')
                  read x)";
  launched_program run{under_caf_run({"sh", "-c", story, RINGMASTER_PROGRAM})};
  CHECK(run.await_output("caf-run: node-3 was ended by signal 9 (Killed), and took with it devices 0x"));
  CHECK(run.await_output("; the program goes on\n"));
  auto line = run.error.substr(run.error.find("caf-run: node-3"));
  CAPTURE(line);
  CHECK(line.find(" of communicator 1 (") != std::string::npos);
  auto before_end = run.error.size();
  run.child.stop();
  run.finish();
  auto end = run.error.substr(before_end);
  CAPTURE(end);
  CHECK(end.find("[node-1] ") != std::string::npos);
  for (auto part : {"died", "epoch", "was lost"})
    CHECK(end.find(part) == std::string::npos);
}

TEST_CASE("processes: the bench does not run a file's schedules on devices that cannot know them") {
  ringmaster::test::temporary_directory dir;
  auto file = (dir.path() / "ring.json").string();
  launched_program written{
    {RINGMASTER_PROGRAM, "prove", "all_reduce", "--algorithm=ring", "--ranks=3", "--count=6", "--write", file}};
  REQUIRE(written.finish() == 0);
  launched_program run{under_caf_run({RINGMASTER_PROGRAM, "bench", "--schedule", file})};
  CHECK(run.finish() == 2);
  CHECK(run.error.find("--schedule: the devices are in other processes") != std::string::npos);
}

TEST_CASE(
  "processes: a node that is killed, or frozen, takes its devices with it, and the survivors' result is right") {
  for (auto how : {"kill", "freeze", "kill-joint"}) {
    CAPTURE(how);
    launched_program run{under_caf_run({RINGMASTER_NODE_FAULT, how})};
    auto status = run.finish();
    CAPTURE(run.output);
    CAPTURE(run.error);
    CHECK(status == 0);
    CHECK(run.output.find("right on 6 survivors") != std::string::npos);
    CHECK((run.output.find("is silent, as the status says") != std::string::npos) == (how == std::string{"freeze"}));
  }
}

TEST_CASE("processes: a bench whose node is drained meanwhile ends with what has become of its ranks") {
  for (std::string what : {"4K --samples 10000", "16M -n 1"}) { // among operations, and while ranks' memory is filled
    CAPTURE(what);
    auto story = R"("$0" bench --max-bytes 16M -b )" + what + R"( 2>&1 | { read line; "$0" drain node-2; cat; })";
    launched_program run{under_caf_run({"sh", "-c", story, RINGMASTER_PROGRAM})};
    CHECK(run.finish() == 0);
    CAPTURE(run.output);
    CHECK(run.output.find("ringmaster bench: a device was lost while it was measured: rank ") != std::string::npos);
    CHECK(run.output.find("is drained") != std::string::npos);
  }
}

TEST_CASE("processes: a drained node exits with status 0, and that is no loss") {
  auto story = R"("$0" drain node-2 && "$0" info; "$0" drain node-2)";
  launched_program run{under_caf_run({"sh", "-c", story, RINGMASTER_PROGRAM})};
  CHECK(run.finish() == 1); // the second
  CAPTURE(run.error);
  CAPTURE(run.output);
  for (auto said : {"node node-2 has ended\n", "3 nodes, 6 devices (6 free)", "node node-2 left: it was drained"})
    CHECK(run.output.find(said) != std::string::npos);
  CHECK(run.error.find("[node-2] ") != std::string::npos);
  CHECK(run.error.find("node node-2 has been drained: ends") != std::string::npos);
  CHECK(run.error.find("ringmaster drain: there is no node \"node-2\"; there are node-1, node-3, node-4")
        != std::string::npos);
  CHECK(run.error.find("caf-run: ") == std::string::npos);
}

TEST_CASE("processes: the status and the faults name devices, nodes and processes") {
  auto story = R"("$0" status "$RINGMASTER_COORDINATOR"; "$0" kill 0x1; "$0" kill 99; "$0" status --json)";
  launched_program run{under_caf_run({"sh", "-c", story, RINGMASTER_PROGRAM})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CAPTURE(run.output);
  CHECK(run.output.find("4 nodes on 1 host, 8 devices (8 free), 0 communicators\n") != std::string::npos);
  CHECK(run.output.find("device 0x1 (node-") != std::string::npos);
  CHECK(run.output.find("), which is free: dies\n") != std::string::npos);
  CHECK(run.error.find("ringmaster kill: there is no device 0x63; there are 0x") != std::string::npos);
  auto json = run.output.find('{');
  REQUIRE(json != std::string::npos);
  auto parsed = ringmaster::parse_json(run.output.substr(json));
  REQUIRE(parsed);
}

TEST_CASE(
  "processes: memory files that are cut end their owner at most, and what is called then is right over others") {
  launched_program run{under_caf_run({RINGMASTER_NODE_FAULT, "cut"})};
  auto status = run.finish();
  CAPTURE(run.output);
  CAPTURE(run.error);
  CHECK(status == 0);
  CHECK(run.output.find(".memory was cut: it has 0 bytes, not ") != std::string::npos);
}

TEST_CASE("processes: a client hears at once that its coordinator was killed, also of the next calls") {
  launched_program run{{RINGMASTER_CAF_RUN, "--binary", RINGMASTER_PROGRAM, "--local", "4", "--coordinator-restarts",
                        "0", "--", RINGMASTER_NODE_FAULT, "orphan"}};
  run.finish();
  CAPTURE(run.error);
  CAPTURE(run.output);
  CHECK(run.output.starts_with("100 calls ended within 1 s: the coordinator is gone: "));
}

TEST_CASE("processes: a copy in many pieces comes out right while others call") {
  launched_program run{under_caf_run({RINGMASTER_NODE_FAULT, "large-copy", "16"})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CAPTURE(run.output);
  CHECK(run.output.starts_with("16 MiB in "));
}

TEST_CASE("processes: every kind is right over every route") {
  ringmaster::test::temporary_directory dir;
  for (std::string route : {"memory", "link", "messages"}) {
    auto conf = (dir.path() / route).string();
    std::ofstream{conf} << "[route]\nuse=\"" << route << "\"\n";
    const std::string sized
      = "all_reduce reduce broadcast all_gather reduce_scatter all_to_all gather scatter send_recv";
    const std::string bench = "\"$0\" bench $kind --algorithm all --samples 1 -w 0 -n 2 --no-memory-limit";
    auto story = "for kind in " + sized + "; do " + bench + " -b 4K -e 4K || exit 1; done; kind=barrier; " + bench;
    auto arguments = under_caf_run({"sh", "-c", story, RINGMASTER_PROGRAM});
    arguments.insert(arguments.begin() + 1, {"--conf", conf});
    launched_program run{std::move(arguments)};
    CHECK(run.finish() == 0);
    CAPTURE(run.error);
    CAPTURE(run.output);
    size_t right = 0;
    for (size_t at = 0; (at = run.output.find("# every result was right", at)) != std::string::npos; ++at)
      ++right;
    CHECK(right == 10);
  }
}

TEST_CASE("processes: bulk connections that are wanted and not there are an error, and no other way is taken") {
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--route.use=link"}};
  REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:"));
  auto where = "127.0.0.1:" + word_after(coordinator.error, "coordinator at 127.0.0.1:");
  auto node_with = [&](const std::string& key) {
    return std::vector<std::string>{RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "1", key};
  };
  launched_program with{node_with("--route.use=link")}, without{node_with("--link.addresses=[\"192.0.2.1\"]")};
  launched_program info{{RINGMASTER_PROGRAM, "info", "--join", where, "--devices", "2"}};
  REQUIRE(info.finish() == 0);
  launched_program run{{RINGMASTER_PROGRAM, "bench", "--join", where, "--samples", "1", "--max-bytes", "64"}};
  CHECK(run.finish() == 1);
  CAPTURE(run.error);
  CHECK(run.error.find("its process takes no bulk connections, as its log says with the reason; route.use is \"link\"")
        != std::string::npos);
  launched_program nowhere{
    {RINGMASTER_PROGRAM, "node", "--join", where, "--route.use=link", "--link.addresses=[\"192.0.2.1\"]"}};
  CHECK(nowhere.finish() == 1);
  CHECK(nowhere.error.find("cannot take bulk connections at 192.0.2.1:0: ") != std::string::npos);
}

TEST_CASE("processes: nodes, programs and ranks with another route than the cluster's are refused") {
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0"}};
  REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:"));
  auto where = "127.0.0.1:" + word_after(coordinator.error, "coordinator at 127.0.0.1:");
  const std::string theirs = "but its coordinator has \"auto\", which applies to the whole cluster: omit it here, or "
                             "start the coordinator with --route.use=";
  for (std::string command : {"node", "bench", "demo", "tune"}) {
    launched_program run{{RINGMASTER_PROGRAM, command, "--join", where, "--route.use=messages"}};
    CHECK(run.finish() != 0);
    CAPTURE(run.error);
    CHECK(run.error.find(" has route.use \"messages\", " + theirs + "messages") != std::string::npos);
  }
  launched_program ranks{{RINGMASTER_CAF_RUN, "--binary", RINGMASTER_PROGRAM, "--ranks", "2", RINGMASTER_RANK_PROGRAM,
                          "sum", "--route.use=link"}};
  CHECK(ranks.finish() != 0);
  CAPTURE(ranks.error);
  CHECK(ranks.error.find("has route.use \"link\", " + theirs + "link") != std::string::npos);
}

TEST_CASE("processes: a frozen node is noticed by its silence although nothing is asked of it") {
  ringmaster::test::temporary_directory dir;
  auto conf = (dir.path() / "impatient.conf").string();
  std::ofstream{conf} << "[middleman]\nheartbeat-interval=500ms\nconnection-timeout=2s\n"; // not 20 s, for a test
  auto arguments = under_caf_run({RINGMASTER_NODE_FAULT, "freeze-idle"});
  arguments.insert(arguments.begin() + 1, {"--conf", conf});
  launched_program run{std::move(arguments)};
  auto status = run.finish();
  CAPTURE(run.output);
  CAPTURE(run.error);
  CHECK(status == 0);
}

TEST_CASE("processes: a coordinator that cannot be reached ends in a sentence") {
  for (auto command : {"node", "info", "status", "bench", "demo", "tune"}) {
    launched_program run{{RINGMASTER_PROGRAM, command, "--join", "127.0.0.1:1", "--node.join-timeout=1s"}};
    CHECK(run.finish() == 1);
    CHECK(run.error.find("there is no coordinator: 127.0.0.1:1 (127.0.0.1:1) cannot be reached from 127.0.0.1")
          != std::string::npos);
  }
}

TEST_CASE("processes: a signal ends who connects at once, however long the other end is silent") {
  for (bool joins : {true, false}) {
    CAPTURE(joins);
    silent_listener mute;
    std::vector<std::string> command{RINGMASTER_PROGRAM};
    if (joins)
      command.insert(command.end(), {"node", "--join", fmt::format("127.0.0.1:{}", mute.port)});
    else
      command.insert(command.end(),
                     {"coordinator", "--port=0", fmt::format("--cluster.devices=[\"1,127.0.0.1,{}\"]", mute.port)});
    launched_program run{command};
    REQUIRE(mute.await_caller());
    auto begun = std::chrono::steady_clock::now();
    ::kill(run.child.pid(), SIGINT);
    CHECK(run.finish() == 0);
    CAPTURE(run.error);
    CHECK(run.error.find("ends on signal Interrupt") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds{2}); // of the 5 s it would wait
  }
}

TEST_CASE("processes: a node may start before its coordinator, and stops at once on a signal while it waits") {
  const held_port port; // no other process gets it in between
  const auto where = fmt::format("127.0.0.1:{}", port.number), waits = "waits for the coordinator at " + where;
  launched_program node{{RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "1"}};
  launched_program told{{RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "1", "--node.join-timeout=10min"}};
  REQUIRE(node.await_output(waits));
  REQUIRE(told.await_output(waits));
  ::kill(told.child.pid(), SIGTERM);
  CHECK(told.finish() == 0);
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", std::to_string(port.number)}};
  REQUIRE(coordinator.await_output("coordinator at " + where));
  launched_program info{{RINGMASTER_PROGRAM, "info", "--join", where, "--devices", "1"}};
  CHECK(info.finish() == 0);
  CHECK_MESSAGE(info.output.find("device 0x1 ") != std::string::npos, info.output);
}

TEST_CASE("processes: a node does not wait if another program listens there, or if it cannot listen itself") {
  const held_port port;
  REQUIRE(::listen(port.held.get(), 8) == 0);
  const auto where = fmt::format("127.0.0.1:{}", port.number);
  launched_program node{{RINGMASTER_PROGRAM, "node", "--join", where, "--node.join-timeout=10min"}};
  pollfd comes{port.held.get(), POLLIN, 0};
  REQUIRE(::poll(&comes, 1, static_cast<int>(std::chrono::milliseconds{launched_program::limit}.count())) == 1);
  unique_fd caller{::accept(port.held.get(), nullptr, nullptr)};
  REQUIRE(::write(caller.get(), "SSH-2.0-x\r\n", 11) == 11);
  caller.close();
  CHECK(node.finish() == 1);
  CHECK_MESSAGE(node.error.find("does not answer as a process of ringmaster would") != std::string::npos, node.error);
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", std::to_string(port.number)}};
  CHECK(coordinator.finish() == 1);
  CHECK_MESSAGE(
    coordinator.error.find(where + ": Address already in use: another process has the port; port 0 is any free one")
      != std::string::npos,
    coordinator.error);
}

TEST_CASE("processes: a signal ends who connects to a host that drops what is sent to it") {
  silent_listener deaf;
  deaf.fill();
  launched_program run{{RINGMASTER_PROGRAM, "node", "--join", fmt::format("127.0.0.1:{}", deaf.port)}};
  REQUIRE(deaf.await_dropped());
  auto begun = std::chrono::steady_clock::now();
  ::kill(run.child.pid(), SIGINT);
  CHECK(run.finish() == 0);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds{2}); // of the 3 s that connecting takes
}

TEST_CASE("processes: who watches hears of the coordinator's silence, then of its answers, and Ctrl-C is no failure") {
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0"}};
  REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:"));
  auto where = "127.0.0.1:" + word_after(coordinator.error, "coordinator at 127.0.0.1:");
  launched_program watch{{RINGMASTER_PROGRAM, "status", where, "--watch"}};
  REQUIRE(watch.await_output("0 devices"));
  ::kill(coordinator.child.pid(), SIGSTOP);
  CHECK(watch.await_output("ringmaster status: the coordinator has not answered for "));
  const auto screens = watch.output.size();
  ::kill(coordinator.child.pid(), SIGCONT);
  CHECK(watch.wait_until([&] { return watch.output.size() > screens; }));
  ::kill(watch.child.pid(), SIGINT);
  CHECK(watch.finish() == 0);
  CHECK(watch.output.ends_with("\n"));
}

TEST_CASE("processes: a node reports wrong options before it connects") {
  launched_program nowhere{{RINGMASTER_PROGRAM, "node", "--join", "no-such-host.invalid:7077"}};
  CHECK(nowhere.finish() == 1);
  CHECK(nowhere.error.find("the host \"no-such-host.invalid\" of no-such-host.invalid:7077 is unknown")
        != std::string::npos);
  launched_program empty{{RINGMASTER_PROGRAM, "node", "--join", "127.0.0.1:1", "--devices", "0"}};
  CHECK(empty.finish() == 2);
  CHECK(empty.error.find("--devices 1 or more") != std::string::npos);
}

TEST_CASE("processes: devices that the coordinator's configuration lists are found, with the ids it gives them") {
  launched_program first{{RINGMASTER_PROGRAM, "node", "--name", "one", "--listen", "0"}};
  launched_program second{{RINGMASTER_PROGRAM, "node", "--name", "two", "--listen", "0"}};
  REQUIRE(first.await_output("devices"));
  REQUIRE(second.await_output("devices"));
  auto port_of = [](const launched_program& node) { return word_after(node.error, " at 127.0.0.1:"); };
  auto devices = fmt::format("--cluster.devices=[\"11,127.0.0.1,{}\",\"12,127.0.0.1,{}\",\"21,127.0.0.1,{}\"]",
                             port_of(first), port_of(first), port_of(second));
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", devices}};
  REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:"));
  auto where = "127.0.0.1:" + word_after(coordinator.error, "coordinator at 127.0.0.1:");
  launched_program info{{RINGMASTER_PROGRAM, "info", "--join", where, "--devices", "3"}};
  CHECK(info.finish() == 0);
  for (auto id : {"device 0xb ", "device 0xc ", "device 0x15 "})
    CHECK(info.output.find(id) != std::string::npos);
}

TEST_CASE("processes: no id is used twice after a coordinator that was killed, in the same journal") {
  ringmaster::test::temporary_directory dir;
  auto journal = (dir.path() / "journal").string();
  auto ids_of_a_run = [&](int signal) {
    launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--journal", journal}};
    REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:"));
    auto where = "127.0.0.1:" + word_after(coordinator.error, "coordinator at 127.0.0.1:");
    launched_program node{{RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "2", "--node.orphan-timeout=0s"}};
    launched_program info{{RINGMASTER_PROGRAM, "info", "--join", where, "--devices", "2"}};
    CHECK(info.finish() == 0);
    std::set<uint64_t> result;
    const auto present = info.output.substr(0, info.output.find("\ngone\n")); // not those that it lists as gone
    for (size_t at = 0; (at = present.find("device 0x", at)) != std::string::npos; ++at)
      result.insert(std::stoull(present.substr(at + 9), nullptr, 16));
    ::kill(coordinator.child.pid(), signal);
    coordinator.finish();
    CHECK(node.finish() == 1); // it says that the coordinator is gone
    return result;
  };
  using ids = std::set<uint64_t>;
  CHECK(ids_of_a_run(SIGKILL) == ids{1, 2});
  CHECK(ids_of_a_run(SIGINT) == ids{1025, 1026});  // above what might have been given
  CHECK(ids_of_a_run(SIGKILL) == ids{1027, 1028}); // that one ended in order
}

TEST_CASE("processes: a coordinator whose journal was removed says so in status and by its exit status, and goes on") {
  ringmaster::test::temporary_directory dir;
  auto journal = (dir.path() / "journal").string();
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--journal", journal}};
  REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:"));
  auto where = "127.0.0.1:" + word_after(coordinator.error, "coordinator at 127.0.0.1:");
  std::filesystem::remove_all(journal);
  REQUIRE(coordinator.await_output("was removed or moved away"));
  launched_program status{{RINGMASTER_PROGRAM, "status", "--join", where}};
  CHECK(status.finish() == 0);
  CHECK(status.output.find("the journal lacks ") != std::string::npos);
  CHECK(status.output.find(journal) != std::string::npos);
  launched_program node{
    {RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "1", "--name", "late", "--node.orphan-timeout=0s"}};
  launched_program info{{RINGMASTER_PROGRAM, "info", "--join", where, "--devices", "1"}};
  CHECK(info.finish() == 0);
  ::kill(coordinator.child.pid(), SIGTERM);
  CHECK(coordinator.finish() == 1);
  launched_program log{{RINGMASTER_PROGRAM, "log", journal, "--kind", "node"}};
  CHECK(log.finish() == 0);
  CHECK(log.output.find("node late joined") != std::string::npos);
  CHECK(node.finish() == 1);
}

TEST_CASE("processes: a coordinator whose store was removed writes it anew, or says at once that it cannot") {
  ringmaster::test::temporary_directory dir;
  const auto journal = dir.path() / "journal", store = journal / "store";
  launched_program coordinator{{RINGMASTER_PROGRAM, "coordinator", "--port", "0", "--journal", journal.string()}};
  REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:"));
  const auto where = "127.0.0.1:" + word_after(coordinator.error, "coordinator at 127.0.0.1:");
  std::filesystem::remove_all(store);
  REQUIRE(coordinator.await_output("it was written anew"));
  CHECK(std::filesystem::exists(store / "CURRENT"));
  std::filesystem::remove_all(store);
  std::ofstream{store} << "a file in its place";
  REQUIRE(coordinator.await_output("is in memory only"));
  launched_program status{{RINGMASTER_PROGRAM, "status", "--join", where}};
  CHECK(status.finish() == 0);
  CHECK(status.output.find("is in memory only") != std::string::npos);
  ::kill(coordinator.child.pid(), SIGTERM);
  CHECK(coordinator.finish() == 1);
}

TEST_CASE("processes: a node is back with its devices when its coordinator is restarted, and with new ones if that was "
          "silent") {
  ringmaster::test::temporary_directory dir;
  const auto conf = (dir.path() / "conf").string(), journal = (dir.path() / "journal").string();
  std::ofstream{conf} << "[middleman]\nconnection-timeout=2s\n"; // not 20 s, for a test
  auto coordinator_at = [&](const std::string& port) {
    return launched_program{{RINGMASTER_PROGRAM, "coordinator", "--port", port, "--journal", journal, "--conf", conf}};
  };
  auto first = coordinator_at("0");
  REQUIRE(first.await_output("coordinator at 127.0.0.1:"));
  const auto port = word_after(first.error, "coordinator at 127.0.0.1:"), where = "127.0.0.1:" + port;
  launched_program node{
    {RINGMASTER_PROGRAM, "node", "--join", where, "--devices", "2", "--name", "alpha", "--conf", conf}};
  auto devices = [&] {
    launched_program info{{RINGMASTER_PROGRAM, "info", "--join", where, "--devices", "2"}};
    CHECK_MESSAGE(info.finish() == 0, info.error);
    CHECK(info.output.find("alpha") != std::string::npos);
    const auto present = info.output.substr(0, info.output.find("\ngone\n")); // not those that it lists as gone
    std::set<uint64_t> result;
    for (size_t at = 0; (at = present.find("device 0x", at)) != std::string::npos; ++at)
      result.insert(std::stoull(present.substr(at + 9), nullptr, 16));
    return result;
  };
  const auto before = devices();
  ::kill(first.child.pid(), SIGKILL);
  first.finish();
  REQUIRE(node.await_output("waits for its return"));
  auto restarted = coordinator_at(port);
  REQUIRE(restarted.await_output("coordinator at 127.0.0.1:"));
  REQUIRE(node.await_output("the coordinator is back"));
  CHECK(devices() == before);
  node.error.clear();
  ::kill(restarted.child.pid(), SIGTERM); // as `systemctl restart` does
  CHECK(restarted.finish() == 0);
  CHECK_MESSAGE(restarted.error.find("the cluster waits for the next coordinator") != std::string::npos,
                restarted.error);
  auto second = coordinator_at(port);
  REQUIRE(second.await_output("coordinator at 127.0.0.1:"));
  REQUIRE(node.await_output("the coordinator is back"));
  const auto after = devices();
  CHECK(after == before);
  // Now it lives, and is silent for longer than the limit.
  node.error.clear();
  ::kill(second.child.pid(), SIGSTOP);
  const auto lost = node.await_output("waits for its return");
  ::kill(second.child.pid(), SIGCONT);
  CHECK_MESSAGE(lost, node.error);
  CHECK(node.await_output("tries to join again with new ones")); // it was not restarted, and has given the node up
  CHECK(node.await_output("joins again " + where));
  std::set<uint64_t> at_last; // the node says that it joins before the coordinator has let it in
  const auto is_former = [&](uint64_t id) { return after.count(id) != 0; };
  node.wait_until([&] {
    at_last = devices();
    return std::ranges::none_of(at_last, is_former);
  });
  CHECK(at_last.size() == 2);
  CHECK(std::ranges::none_of(at_last, is_former));
  ::kill(node.child.pid(), SIGTERM);
  CHECK(node.finish() == 0);
}

TEST_CASE(
  "processes: a node that cannot join again in time ends with status 1 and a sentence, and at once on SIGTERM") {
  for (bool is_asked_to_stop : {false, true}) {
    CAPTURE(is_asked_to_stop);
    ringmaster::test::started_coordinator coordinator;
    launched_program node{{RINGMASTER_PROGRAM, "node", "--join", coordinator.where, "--devices", "1",
                           is_asked_to_stop ? "--node.orphan-timeout=60s" : "--node.orphan-timeout=1s"}};
    launched_program info{{RINGMASTER_PROGRAM, "info", "--join", coordinator.where, "--devices", "1"}};
    REQUIRE(info.finish() == 0);
    ::kill(coordinator.pid(), SIGKILL);
    REQUIRE(node.await_output("the coordinator is gone"));
    if (is_asked_to_stop)
      ::kill(node.child.pid(), SIGTERM);
    CHECK(node.finish() == (is_asked_to_stop ? 0 : 1));
    CHECK((node.error.find("this node could not join it again within 1 s (node.orphan-timeout)") != std::string::npos)
          == !is_asked_to_stop);
  }
}

TEST_CASE("processes: two nodes that lose each other, but not the coordinator, finish what is under way") {
  launched_program probe{{"ss", "-K", "dst", "127.0.0.1", "dport", "=", "1"}};
  if (probe.finish() != 0) {
    MESSAGE("skipped: this system does not let connections be cut (ss -K)");
    return;
  }
  launched_program run{under_caf_run({RINGMASTER_PROCESS_PAUSE, "connections", "1"})};
  auto status = run.finish();
  CAPTURE(run.output);
  CAPTURE(run.error);
  CHECK(status == 0);
  CHECK(run.output.find("nothing is lost") != std::string::npos);
}
