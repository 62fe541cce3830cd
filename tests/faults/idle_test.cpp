// Processes that have nothing to do: what they take of the processors, and what is known of them.
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "tests/faults/started_coordinator.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::launch;

namespace {

/// What all threads of a process have had of the processors so far.
struct processor_use {
  explicit processor_use(pid_t pid) {
    for (auto& thread : std::filesystem::directory_iterator{fmt::format("/proc/{}/task", pid)}) {
      uint64_t ns = 0;
      std::ifstream{thread.path() / "schedstat"} >> ns;
      taken_ms += static_cast<double>(ns) / 1e6;
      std::ifstream lines{thread.path() / "status"};
      for (std::string line; std::getline(lines, line);)
        if (line.starts_with("voluntary_ctxt_switches:"))
          sleeps += std::stoull(line.substr(line.find(':') + 1));
    }
  }

  double taken_ms = 0;
  uint64_t sleeps = 0; ///< How often one of them went to sleep: as often as it had been woken.
};

} // namespace

TEST_CASE("idle: coordinator, nodes and a client that have worked take next to no processor time") {
  test::started_coordinator coordinator;
  launched_program one{{RINGMASTER_PROGRAM, "node", "--join", coordinator.where, "--devices", "2", "--name", "one"}};
  launched_program other{
    {RINGMASTER_PROGRAM, "node", "--join", coordinator.where, "--devices", "2", "--name", "other"}};
  configuration cfg;
  REQUIRE_FALSE(cfg.read({"--node.join=" + coordinator.where}, std::nullopt));
  caf::actor_system system{cfg};
  auto home = cluster::open(system, cfg.values());
  REQUIRE_MESSAGE(home, render(home.error()));
  client user{system, (*home)->coordinator()};
  REQUIRE(user.devices(4, std::chrono::seconds{10}));
  launched_program work{
    {RINGMASTER_PROGRAM, "bench", "--join", coordinator.where, "--samples", "1", "--max-bytes", "64K"}};
  REQUIRE(work.finish() == 0);
  auto comm = user.comm_init(4, proto::SHRINK); // without any call
  REQUIRE_MESSAGE(comm, render(comm.error()));

  const std::pair<std::string, pid_t> all[] = {
    {"coordinator", coordinator.pid()}, {"node", one.child.pid()}, {"client", ::getpid()}};
  std::vector<processor_use> before;
  for (auto& [who, pid] : all)
    before.emplace_back(pid);
  constexpr int idle_s = 3;
  pollfd nothing{-1, 0, 0}; // not by looking at what the others write, as `launched_program` does
  ::poll(&nothing, 1, 1000 * idle_s);
  for (size_t i = 0; i < std::size(all); ++i) {
    auto& [who, pid] = all[i];
    CAPTURE(who);
    const processor_use after{pid};
    CHECK(after.taken_ms - before[i].taken_ms < 10 * idle_s); // 1 % of one: on a busy machine each waking takes longer
    // Ten ticks of the clock a second, and some ten wake-ups for each question whether devices live
    // (suspicion.idle-interval).
    CHECK(after.sleeps - before[i].sleeps < 75 * idle_s); // one thread that looks for work every 10 ms does more
  }
}

TEST_CASE("idle: a node that was stopped before the first question is reported with all of its silence") {
  test::started_coordinator coordinator;
  launched_program node{{RINGMASTER_PROGRAM, "node", "--join", coordinator.where, "--devices", "1", "--name", "one"}};
  configuration cfg;
  REQUIRE_FALSE(cfg.read({}, std::nullopt));
  caf::actor_system system{cfg};
  auto host = connect(system, coordinator.where, std::chrono::seconds{10});
  REQUIRE_MESSAGE(host, render(host.error()));
  client user{system, *host};
  REQUIRE(user.devices(1, std::chrono::seconds{10}));
  const auto silent_s = [&] {
    auto status = user.cluster_status();
    REQUIRE_MESSAGE(status, render(status.error()));
    return static_cast<double>(status->cluster().nodes(0).silent_ns()) / 1e9;
  };
  CHECK(silent_s() < 1); // 0 where the machine is not busy
  REQUIRE(::kill(node.child.pid(), SIGSTOP) == 0);
  launched_program passes{{"sleep", "3"}};
  CHECK(passes.finish() == 0);
  CHECK(silent_s() > 2.4); // the last heartbeat came half a second before, at most
  REQUIRE(::kill(node.child.pid(), SIGCONT) == 0);
  CHECK(node.wait_until([&] { return silent_s() == 0; }));
}
