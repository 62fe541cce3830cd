// Hosts with addresses of their own, as far as one kernel can imitate them: tests/programs/hosts.sh.
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace ringmaster::launch;

namespace {

/// A command on hosts of their own, until its end. `settings`: of hosts.sh, in the environment.
struct run_between_hosts {
  run_between_hosts(const std::string& configuration, std::vector<std::string> command,
                    const std::string& settings = "HOSTS_RATE=")
    : program{words(configuration, std::move(command), settings)}, status{program.finish()} {}

  /// It went well, and so do these checks, which are told with all that it said; nothing where it is skipped.
  template <class Checks>
  void check(const Checks& more) const {
    CAPTURE(output);
    CAPTURE(error);
    if (is_skipped())
      return;
    CHECK(status == 0);
    more();
  }

  /// Whether the kernel forbids it, which is said.
  bool is_skipped() const {
    if (output.find("skipped: ") == std::string::npos && error.find("unshare: ") == std::string::npos)
      return false;
    MESSAGE(output, error);
    return true;
  }

  ringmaster::test::temporary_directory dir;
  launched_program program;
  int status;
  const std::string &output = program.output, &error = program.error;

private:
  std::vector<std::string> words(const std::string& configuration, std::vector<std::string> command,
                                 const std::string& settings) const {
    auto conf = (dir.path() / "conf").string();
    std::ofstream{conf} << configuration;
    std::vector<std::string> result{"env",
                                    settings,
                                    "unshare",
                                    "-rnmpf",
                                    "--kill-child",
                                    "--mount-proc",
                                    "sh",
                                    RINGMASTER_SOURCE_DIR "/tests/programs/hosts.sh",
                                    RINGMASTER_PROGRAM,
                                    conf};
    result.insert(result.end(), command.begin(), command.end());
    return result;
  }
};

} // namespace

TEST_CASE("hosts: between hosts blocks go over bulk connections, and every kind is right") {
  auto story = R"("$0" info --devices 8 && "$0" bench all_reduce --algorithm ring --samples 1 -w 0 -n 2 -b 4M -e 4M &&
                  "$0" bench all_to_all --samples 1 -w 0 -n 2 -b 512K -e 512K)";
  run_between_hosts run{"[link]\nchecksums=true\n", {"sh", "-c", story, RINGMASTER_PROGRAM}};
  run.check([&] {
    CHECK(run.output.find("# 8 ranks: 2 nodes of 4 on ") != std::string::npos);
    auto first = run.output.find("# every result was right");
    CHECK(run.output.find("# every result was right", first + 1) != std::string::npos);
    // At least what a ring brings to each host: the message route would have taken it as well.
    auto told = run.error.find("bulk connections: ");
    REQUIRE(told != std::string::npos);
    CHECK(std::stoull(run.error.substr(told + 18)) > 8u << 20);
  });
}

TEST_CASE("hosts: two that lose each other, but not the coordinator, finish what is under way") {
  run_between_hosts run{"", {RINGMASTER_PROCESS_PAUSE, "hosts-cut", "1"}};
  run.check([&] {
    CHECK(run.output.find("nothing is lost") != std::string::npos);
    // Not the 20 s that a process may be silent: nobody acknowledges what is sent, noticed after 3 s.
    auto longest = run.output.find("the longest took ");
    REQUIRE(longest != std::string::npos);
    CHECK(std::stod(run.output.substr(longest + 17)) < 10);
  });
}

TEST_CASE("hosts: the whole network is away for 3.5 s, where 5 s of silence are a loss, and nothing is lost") {
  // TCP's own pauses double: it would try at 3.0 s and then at 6.2 s.
  run_between_hosts run{"[middleman]\nconnection-timeout=5s\n[suspicion]\npause-max=20s\nlate-after=15s\n",
                        {RINGMASTER_PROCESS_PAUSE, "hosts-away", "3.5"}};
  run.check([&] { CHECK(run.output.find("nothing is lost") != std::string::npos); });
}

TEST_CASE("hosts: nodes beside the coordinator and elsewhere reach each other directly, though names mean 127.0.1.1") {
  auto story = R"("$0" info --devices 9 > /dev/null &&
         "$0" bench all_reduce --algorithm ring --samples 1 -w 0 -n 2 -b 64 -e 64 && "$0" info)";
  run_between_hosts run{"", {"sh", "-c", story, RINGMASTER_PROGRAM}, "HOSTS_ON_C=1"};
  run.check([&] {
    CHECK(run.output.find("# every result was right") != std::string::npos);
    for (auto its : {" on c, ", " at 10.9.0.1:", " at 10.9.0.2:", " at 10.9.0.3:"})
      CHECK(run.output.find(its) != std::string::npos);
    CHECK(run.output.find("no direct way") == std::string::npos);
  });
}

TEST_CASE(
  "hosts: nodes that listen where their own names mean, 127.0.1.1, say so; their blocks go straight all the same") {
  auto story = R"("$0" info --devices 8 > /dev/null &&
         "$0" bench all_reduce --algorithm ring --samples 1 -w 0 -n 2 -b 4M -e 4M)";
  run_between_hosts run{"[route]\nuse=\"link\"\n", {"sh", "-c", story, RINGMASTER_PROGRAM}, "HOSTS_BY_NAME=1"};
  run.check([&] {
    CHECK(run.output.find("# every result was right") != std::string::npos);
    CHECK(run.error.find("node n1 tells the others that it is at n1, a loopback address here: ") != std::string::npos);
    CHECK(run.error.find("--listen-host auto takes the address that leads to the coordinator, 10.9.0.2")
          != std::string::npos);
  });
}

TEST_CASE("hosts: a large copy over a link of 100 MB/s lets other calls and signs of life over the same link pass") {
  run_between_hosts run{
    "[device]\nmemory-bytes=\"256 MiB\"\n", {RINGMASTER_NODE_FAULT, "large-copy", "160"}, "HOSTS_RATE=800mbit"};
  run.check([&] {
    auto told = run.output.find("160 MiB in ");
    REQUIRE(told != std::string::npos);
    const auto took_s = std::stod(run.output.substr(told + 11));
    CHECK(took_s > 1.5); // so slow is the link, or there is none of that kind
    const auto ms_after = [&](const std::string& before) {
      const auto found = run.output.find(before);
      REQUIRE(found != std::string::npos);
      return std::stod(run.output.substr(found + before.size()));
    };
    CHECK(ms_after("other calls took ") < 100);
    for (auto longest : {"in the median, ", "nodes were silent for "}) // of which a machine that is busy has a part
      CHECK(ms_after(longest) < 1e3 * took_s / 4);                     // none waits for all of it
  });
}
