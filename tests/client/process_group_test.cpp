// The same program as one process, and as a process for each rank under caf-run and MPI's launchers.
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <csignal>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

std::vector<std::string> under_caf_run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RINGMASTER_CAF_RUN);
  return arguments;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string line; std::getline(stream, line);)
    result.push_back(line);
  std::sort(result.begin(), result.end());
  return result;
}

using lines = std::vector<std::string>;

/// What so many ranks say that are left of them all.
lines met_in_memory(uint32_t left, uint32_t of) {
  lines result;
  for (uint32_t rank = 0; rank < left; ++rank)
    result.push_back("rank " + std::to_string(rank) + ": " + std::to_string(left) + " of " + std::to_string(of)
                     + " ranks, met in memory");
  return result;
}

/// A port that nobody has at the moment.
std::string free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&own), size) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0);
  ::close(fd);
  return std::to_string(ntohs(own.sin_port));
}

std::vector<std::string> words(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

} // namespace

TEST_CASE("process_group: without a launcher one process plays all ranks") {
  launched_program run{{RINGMASTER_RANK_PROGRAM, "sum"}};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CHECK(run.output == "1 of 1: the sum is 1\n");
}

TEST_CASE("process_group: under caf-run --ranks each process is a rank") {
  launched_program run{under_caf_run({"--ranks", "3", "--tag-output", RINGMASTER_RANK_PROGRAM, "sum"})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CHECK(sorted_lines(run.output)
        == lines{"[rank 0] 1 of 3: the sum is 6", "[rank 1] 2 of 3: the sum is 6", "[rank 2] 3 of 3: the sum is 6"});
}

TEST_CASE("process_group: ranks that are processes of a host meet in memory, alone, without waiting and over halves") {
  launched_program run{under_caf_run({"--ranks", "4", RINGMASTER_RANK_PROGRAM, "many"})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CHECK(sorted_lines(run.output) == met_in_memory(4, 4));
}

TEST_CASE("process_group: one that is killed while they meet is lost, and the others meet without it") {
  launched_program run{under_caf_run({"--ranks", "3", RINGMASTER_RANK_PROGRAM, "dies"})};
  CHECK(run.finish() != 0);
  CAPTURE(run.error);
  CHECK(sorted_lines(run.output) == met_in_memory(2, 3));
}

TEST_CASE("process_group: one whose process stands still for a second is waited for, and nothing is lost") {
  launched_program run{under_caf_run({"--ranks", "3", RINGMASTER_RANK_PROGRAM, "pauses"})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  CHECK(sorted_lines(run.output) == met_in_memory(3, 3));
  CHECK(!contains(run.error, "was lost"));
}

TEST_CASE(
  "process_group: 30,000 sums that are started without waiting are all right, though one rank comes a second late") {
  launched_program run{under_caf_run({"--ranks", "4", RINGMASTER_RANK_PROGRAM, "unwaited"})};
  CHECK(run.finish() == 0);
  CAPTURE(run.error);
  lines right;
  for (auto rank : {"0", "1", "2", "3"})
    right.push_back(std::string{"rank "} + rank + " of 4: 30000 sums are right, in epoch 1");
  CHECK(sorted_lines(run.output) == right);
  CHECK(!contains(run.error, "late"));
}

TEST_CASE(
  "process_group: where somebody cuts the page on which they meet no rank is told a wrong sum, and all say why") {
  launched_program run{under_caf_run({"--ranks", "3", RINGMASTER_RANK_PROGRAM, "cut"})};
  run.finish();
  CAPTURE(run.error);
  const auto said = sorted_lines(run.output);
  CHECK(said.size() == 3);
  for (auto& line : said) {
    CHECK(contains(line, ": all sums are right until "));
    CHECK(contains(line, "the page where its ranks meet was cut, or its disk is full"));
  }
  CHECK(!contains(run.error, "rank_program: "));
}

TEST_CASE("process_group: a process that ends is a rank that is lost, and its status is that of all") {
  launched_program run{under_caf_run({"--ranks", "3", "--tag-output", RINGMASTER_RANK_PROGRAM, "exit-3"})};
  CHECK(run.finish() == 3);
  CAPTURE(run.error);
  CHECK(sorted_lines(run.output) == lines{"[rank 0] 1 of 3: the sum is 3", "[rank 1] 2 of 3: the sum is 3"});
  CHECK(contains(run.error, "caf-run: rank 2 exited with status 3: it had enough")); // the others may have ended, too
}

TEST_CASE("process_group: a rank that exits with status 0 without finalize is named, and counts as a failure") {
  launched_program run{under_caf_run({"--ranks", "3", RINGMASTER_RANK_PROGRAM, "leaves"})};
  CHECK(run.finish() == 1);
  CAPTURE(run.error);
  CHECK(sorted_lines(run.output) == lines{"1 of 3: the sum is 3", "2 of 3: the sum is 3"});
  CHECK(contains(run.error, "caf-run: rank 2 exited with status 0 without finalize, while others were at work"));
  CHECK_FALSE(contains(run.error, "caf-run: rank 0"));
  CHECK_FALSE(contains(run.error, "caf-run: rank 1"));
}

TEST_CASE("process_group: who does not come is named within the limit") {
  const auto program = std::string{"[ $RINGMASTER_RANK = 1 ] && exec sleep 2; exec "} + RINGMASTER_RANK_PROGRAM
                       + " sum";
  launched_program run{under_caf_run({"--ranks", "3", "--tag-output", "--timeout", "700ms", "sh", "-c", program})};
  CHECK(run.finish() == 1);
  CAPTURE(run.error);
  for (auto rank : {"0", "2"})
    CHECK(contains(run.error, std::string{"[rank "} + rank + "] rank_program: rank " + rank
                                + " of 3 (caf-run): rank 1 of 3 of \"world\" did not come within 700 ms\n"));
}

TEST_CASE("process_group: where a rank's process ends before it has come, those that wait for it hear so at once") {
  launched_program run{under_caf_run({"--ranks", "3", "--tag-output", RINGMASTER_RANK_PROGRAM, "no-show"})};
  CHECK(run.finish() == 1);
  CAPTURE(run.error);
  for (auto rank : {"0", "2"})
    CHECK(contains(run.error, std::string{"[rank "} + rank + "] rank_program: rank " + rank
                                + " of 3 (caf-run): rank 1 of 3 of \"world\" does not come: its process exited with "
                                  "status 0\n"));
}

namespace {

/// A launcher of MPI's, to its end. MPICH's fails by itself now and then, before it has started anybody: it begins
/// again.
std::unique_ptr<launched_program> launched_by_mpi(const std::vector<std::string>& line) {
  constexpr int tries = 4;
  for (int i = 1;; ++i) {
    auto run = std::make_unique<launched_program>(line);
    run->finish();
    if (i == tries || !contains(run->error, "HYD_pmcd_pmiserv_proxy_init_cb"))
      return run;
  }
}

} // namespace

TEST_CASE("process_group: under mpirun rank 0 hosts the coordinator, as long as another one works") {
  for (auto launcher : {"mpirun.openmpi", "mpirun.mpich"}) {
    CAPTURE(launcher);
    auto path = std::string{"/usr/bin/"} + launcher;
    if (!std::filesystem::exists(path)) {
      MESSAGE("skipped: ", path, " is not there");
      continue;
    }
    std::vector<std::string> start{"env", "MASTER_PORT=" + free_port(), path, "-np", "3"};
    if (contains(path, "openmpi"))
      start = words(start, {"--oversubscribe", "--allow-run-as-root"});
    const auto all = launched_by_mpi(words(start, {RINGMASTER_RANK_PROGRAM, "sum"}));
    CHECK(all->finish() == 0);
    CAPTURE(all->error);
    CHECK(sorted_lines(all->output) == lines{"1 of 3: the sum is 6", "2 of 3: the sum is 6", "3 of 3: the sum is 6"});
    const auto two = launched_by_mpi(words(start, {RINGMASTER_RANK_PROGRAM, "early"}));
    CHECK(two->finish() == 0);
    CAPTURE(two->error);
    CHECK(sorted_lines(two->output) == lines{"2 of 3: the sum is 5", "3 of 3: the sum is 5"});
    CHECK(contains(two->error, "rank 0 (device 0x1, rank-0")); // which is in the coordinator's process
  }
}

TEST_CASE("process_group: two jobs of mpirun share a host, and one may be caf-run's program") {
  const std::string mpirun = "/usr/bin/mpirun.openmpi";
  if (!std::filesystem::exists(mpirun)) {
    MESSAGE("skipped: ", mpirun, " is not there");
    return;
  }
  // Two mpiruns that make one directory for their sessions at the same time fail by themselves.
  temporary_directory directory;
  auto job = [&](const std::string& name) {
    std::filesystem::create_directories(directory.path() / name);
    return std::vector<std::string>{"env",
                                    "TMPDIR=" + (directory.path() / name).string(),
                                    mpirun,
                                    "-np",
                                    "2",
                                    "--oversubscribe",
                                    "--allow-run-as-root",
                                    RINGMASTER_RANK_PROGRAM,
                                    "sum"};
  };
  const lines both{"1 of 2: the sum is 3", "2 of 2: the sum is 3"};
  launched_program one{job("one")}, other{job("other")}, within{under_caf_run(words({"--local", "2"}, job("within")))};
  for (auto* each : {&one, &other, &within}) {
    CHECK(each->finish() == 0);
    CAPTURE(each->error);
    CHECK(sorted_lines(each->output) == both);
  }
}

TEST_CASE("process_group: by torchrun's variables ranks find each other, or say where they have looked") {
  auto port = free_port();
  auto as_rank = [&](const char* rank) {
    return std::vector<std::string>{"env",
                                    "WORLD_SIZE=2",
                                    std::string{"RANK="} + rank,
                                    std::string{"LOCAL_RANK="} + rank,
                                    "MASTER_ADDR=localhost",
                                    "MASTER_PORT=" + port,
                                    RINGMASTER_RANK_PROGRAM,
                                    "sum"};
  };
  launched_program alone{words(as_rank("1"), {"--ranks.join-timeout=100ms"})};
  CHECK(alone.finish() == 1);
  CAPTURE(alone.error);
  CHECK(contains(alone.error, "rank_program: rank 1 of 2 (torchrun): rank 0 was not found at localhost:" + port
                                + " (MASTER_ADDR) within 100 ms"));
  launched_program second{as_rank("1")}, first{as_rank("0")};
  CHECK(first.finish() == 0);
  CHECK(second.finish() == 0);
  CHECK(first.output + second.output == "1 of 2: the sum is 3\n2 of 2: the sum is 3\n");
}

namespace {

/// A rank of two that a launcher has started without saying where rank 0 is: 127.0.0.1 and `port`.
std::vector<std::string> rank_of_two(const std::string& rank, const std::string& port, const lines& environment) {
  auto result = words({"env"}, environment);
  return words(result, {RINGMASTER_RANK_PROGRAM, "sum", "--coordinator.port=" + port, "--ranks.join-timeout=20s",
                        "--node.name=stranger-" + rank});
}

/// The environments of rank `rank` of 2 that launchers give without a name of the job.
std::vector<std::pair<std::string, lines>> nameless_jobs(const std::string& rank) {
  return {
    {"torchrun, MASTER_PORT 29517",
     {"RANK=" + rank, "WORLD_SIZE=2", "LOCAL_RANK=" + rank, "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
      "MASTER_PORT=29517", "TORCHELASTIC_USE_AGENT_STORE=True", "TORCHELASTIC_RUN_ID=none"}},
    {"Open MPI, 2 ranks of a job without a name",
     {"OMPI_COMM_WORLD_RANK=" + rank, "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=" + rank,
      "OMPI_COMM_WORLD_LOCAL_SIZE=2"}},
    {"MPICH, 2 ranks of a job without a name",
     {"PMI_RANK=" + rank, "PMI_SIZE=2", "MPI_LOCALRANKID=" + rank, "MPI_LOCALNRANKS=2"}},
  };
}

} // namespace

TEST_CASE("process_group: ranks of a job without a name do not join a coordinator that serves another one, or none") {
  const auto port = free_port();
  for (std::string other : {"", "another job"}) {
    launched_program coordinator{{"env", "RINGMASTER_JOB=" + other, RINGMASTER_PROGRAM, "coordinator", "--port", port}};
    REQUIRE(coordinator.await_output("coordinator at 127.0.0.1:" + port));
    const auto theirs = other.empty() ? "serves no launcher's job" : "serves the job \"" + other + "\"";
    for (size_t i = 0; i < nameless_jobs("0").size(); ++i) {
      CAPTURE(i);
      const auto ours = nameless_jobs("0")[i].first;
      launched_program first{rank_of_two("0", port, nameless_jobs("0")[i].second)};
      launched_program second{rank_of_two("1", port, nameless_jobs("1")[i].second)};
      CHECK(first.finish() == 1);
      CHECK(second.finish() == 1);
      CHECK_MESSAGE(contains(first.error, "cannot listen at 127.0.0.1:" + port + " for the other ranks"), first.error);
      CHECK_MESSAGE(contains(first.error, "the coordinator there says: rank 0 belongs to the job \"" + ours
                                            + "\", but the coordinator that it found " + theirs),
                    first.error);
      CHECK_MESSAGE(contains(second.error, "node stranger-1 belongs to the job \"" + ours
                                             + "\", but the coordinator that it found " + theirs),
                    second.error);
    }
    ::kill(coordinator.child.pid(), SIGTERM);
    CHECK(coordinator.finish() == 0);
    CHECK_FALSE(contains(coordinator.error, "stranger"));
  }
}

TEST_CASE("process_group: a rank joins no world of another job that still waits for one of its number") {
  const auto port = free_port();
  auto job = [](const std::string& rank, const std::string& name) {
    return lines{"PMI_RANK=" + rank, "PMI_SIZE=2", "PMI_JOBID=" + name};
  };
  auto with_port = [&](const std::string& rank, const std::string& name) {
    auto result = rank_of_two(rank, port, job(rank, name));
    result.insert(result.begin() + 1, "MASTER_PORT=" + port);
    return result;
  };
  launched_program first{with_port("0", "one")};
  launched_program stranger{with_port("1", "another")};
  CHECK(stranger.finish() == 1);
  CHECK_MESSAGE(contains(stranger.error, "belongs to the job \"MPICH job another\", but the coordinator that it found "
                                         "serves the job \"MPICH job one\""),
                stranger.error);
  launched_program second{with_port("1", "one")};
  CHECK(first.finish() == 0);
  CHECK(second.finish() == 0);
  CHECK(first.output + second.output == "1 of 2: the sum is 3\n2 of 2: the sum is 3\n");
}

TEST_CASE("process_group: two jobs of MPICH on one host, which have no name, are told apart by their mpiexec") {
  // As Hydra does it: a daemon, which knows where its mpiexec listens, starts the ranks of its host.
  script_directory scripts;
  const auto daemon = scripts.write("hydra_pmi_proxy",
                                    "#!/bin/sh\nPMI_RANK=0 \"$3\" sum & PMI_RANK=1 \"$3\" sum; wait\n");
  auto job = [&](const std::string& port) {
    return std::vector<std::string>{"env",  "PMI_SIZE=2",     "MPI_LOCALNRANKS=2", "sh",
                                    daemon, "--control-port", "localhost:" + port, RINGMASTER_RANK_PROGRAM};
  };
  launched_program one{job("40001")}, other{job("40002")};
  for (auto* each : {&one, &other}) {
    CHECK(each->finish() == 0);
    CAPTURE(each->error);
    CHECK(sorted_lines(each->output) == lines{"1 of 2: the sum is 3", "2 of 2: the sum is 3"});
  }
}

TEST_CASE("process_group: an environment that contradicts itself is a sentence") {
  launched_program run{{"env", "RANK=2", "WORLD_SIZE=2", RINGMASTER_RANK_PROGRAM}};
  CHECK(run.finish() == 1);
  CHECK(run.error == "rank_program: RANK is 2, but WORLD_SIZE is 2: ranks are counted from 0\n");
}
