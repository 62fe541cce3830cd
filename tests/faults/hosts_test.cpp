// Hosts with addresses of their own, as far as one kernel can imitate them: tests/programs/hosts.sh.
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <sstream>

using namespace ringmaster::launch;

namespace {

/// A command on hosts of their own, until its end. `settings`: of hosts.sh, in the environment.
struct run_between_hosts {
  run_between_hosts(const std::string& configuration, std::vector<std::string> command,
                    const std::string& settings = "HOSTS_RATE=")
    : program{words(configuration, std::move(command), settings)}, status{program.finish()} {}

  /// It succeeded, and so do these checks, which print its output if they fail; nothing if it is skipped.
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
    std::vector<std::string> result{"env"};
    std::istringstream all{settings};
    result.insert(result.end(), std::istream_iterator<std::string>{all}, {});
    const std::vector<std::string> more{"unshare",          "-rnmpf", "--kill-child",
                                        "--mount-proc",     "sh",     RINGMASTER_SOURCE_DIR "/tests/programs/hosts.sh",
                                        RINGMASTER_PROGRAM, conf};
    result.insert(result.end(), more.begin(), more.end());
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
    // Not the 20 s that a process may be silent: data that is not acknowledged is noticed after 3 s.
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

TEST_CASE("hosts: nodes of hosts that have IPv6 alone reach each other, and say so in a way that can be pasted") {
  auto story = R"sh("$0" info --devices 9 > /dev/null &&
         "$0" bench all_reduce --algorithm ring --samples 1 -w 0 -n 2 -b 4M -e 4M && "$0" info &&
         "$0" info --join "$("$0" info | sed -n 's/^coordinator at \(.*\): 3 nodes.*/\1/p')")sh";
  const auto settings = "HOSTS_IPV6=1 HOSTS_ON_C=1";
  run_between_hosts run{"[route]\nuse=\"link\"\n", {"sh", "-c", story, RINGMASTER_PROGRAM}, settings};
  run.check([&] {
    CHECK(run.output.find("# every result was right") != std::string::npos);
    for (auto its : {" on c, ", " at [fd00:9::1]:", " at [fd00:9::2]:", " at [fd00:9::3]:"})
      CHECK(run.output.find(its) != std::string::npos);
    CHECK(run.output.find("no direct way") == std::string::npos);
    CHECK(run.error.find("node n1 at [fd00:9::1]:") != std::string::npos);
  });
}

TEST_CASE("hosts: caf-run starts ranks by ssh on hosts that it knows by address, of either family") {
  for (std::string family : {"HOSTS_IPV6=", "HOSTS_IPV6=1"}) {
    const bool ipv6 = family.ends_with('1');
    const std::string hosts = ipv6 ? "[fd00:9::1]:1\nroot@[fd00:9::2]:1\nlocalhost\n"
                                   : "10.9.0.1:1\nroot@10.9.0.2 slots=1\nlocalhost\n";
    const auto story = "printf '" + hosts
                       + "' > /run/hostfile && \"$0\" --hostfile /run/hostfile --ssh hosts-ssh --ranks 3 -- \"$1\" sum";
    run_between_hosts run{"", {"sh", "-c", story, RINGMASTER_CAF_RUN, RINGMASTER_RANK_PROGRAM}, family};
    run.check([&] {
      for (auto rank : {"1 of 3: the sum is 6\n", "2 of 3: the sum is 6\n", "3 of 3: the sum is 6\n"})
        CHECK(run.output.find(rank) != std::string::npos);
    });
  }
}

namespace {

/// A command on a host whose loopback interface has ::1 alone, until its end.
struct run_on_ipv6_host {
  explicit run_on_ipv6_host(std::vector<std::string> command)
    : program{words(std::move(command))}, status{program.finish()} {}

  bool is_skipped() const {
    if (program.error.find("unshare: ") == std::string::npos && program.output.find("skipped") == std::string::npos)
      return false;
    MESSAGE(program.output, program.error);
    return true;
  }

  launched_program program;
  int status;
  const std::string &output = program.output, &error = program.error;

private:
  static std::vector<std::string> words(std::vector<std::string> command) {
    std::vector<std::string> result{
      "unshare",
      "-rn",
      "sh",
      "-c",
      "ip link set lo up && ip address del 127.0.0.1/8 dev lo || { echo skipped; exit; }; "
      "exec \"$@\"",
      "sh"};
    result.insert(result.end(), command.begin(), command.end());
    return result;
  }
};

} // namespace

TEST_CASE("hosts: where there is IPv6 alone caf-run listens at ::1, also by --address") {
  for (std::vector<std::string> options : {std::vector<std::string>{}, {"--address", "::1"}, {"--address", "[::1]"}}) {
    std::vector<std::string> command{RINGMASTER_CAF_RUN};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--ranks", "2", "--", RINGMASTER_RANK_PROGRAM, "sum"});
    run_on_ipv6_host run{command};
    if (run.is_skipped())
      return;
    CAPTURE(run.error);
    CHECK(run.status == 0);
    CHECK(run.output.find("1 of 2: the sum is 3\n") != std::string::npos);
    CHECK(run.output.find("2 of 2: the sum is 3\n") != std::string::npos);
  }
  run_on_ipv6_host nodes{{RINGMASTER_CAF_RUN, "--local", "2", "--", RINGMASTER_PROGRAM, "info", "--devices", "4"}};
  CHECK(nodes.status == 0);
  CHECK_MESSAGE(nodes.output.find("node-2, process ") != std::string::npos, nodes.error);
  CHECK(nodes.output.find(", at [::1]:") != std::string::npos);
  run_on_ipv6_host elsewhere{{RINGMASTER_CAF_RUN, "--address", "127.0.0.1", "--ranks", "2", "--", "true"}};
  CHECK(elsewhere.status == 125);
  CHECK_MESSAGE(elsewhere.error.find("cannot listen at 127.0.0.1, which is no address of this host; it has ::1, and :: "
                                     "stands for all")
                  != std::string::npos,
                elsewhere.error);
}

TEST_CASE("hosts: where there is IPv6 alone what a coordinator and a node print can be pasted") {
  const auto story = R"sh(
    "$0" coordinator --port 0 > /dev/null 2> coordinator.log & c=$!
    until grep -q ' coordinator at ' coordinator.log; do kill -0 $c || exit 1; sleep 0.01; done
    where=$(sed -n 's/.* coordinator at \([^ ]*\) .*/\1/p' coordinator.log)
    "$0" node --join "$where" --devices 2 --name near 2> node.log & n=$!
    "$0" info --join "$where" --nodes near && "$0" status "$where" &&
      "$0" bench all_reduce -b 64 -e 64 -n 1 --join "$where"
    status=$?
    grep -o 'node near at [^ ]*' node.log; grep -o 'joins [^;]*' node.log
    kill $n $c; wait; exit $status)sh";
  ringmaster::test::temporary_directory dir;
  run_on_ipv6_host run{{"sh", "-c", "cd " + dir.path().string() + "; " + story, RINGMASTER_PROGRAM}};
  if (run.is_skipped())
    return;
  CAPTURE(run.error);
  CAPTURE(run.output);
  CHECK(run.status == 0);
  CHECK(run.output.find("node near at [::1]:") != std::string::npos);
  CHECK(run.output.find("joins [::1]:") != std::string::npos);
  CHECK(run.output.find("coordinator at [::1]:") != std::string::npos);
  CHECK(run.output.find("# every result was right") != std::string::npos);
}

TEST_CASE("hosts: where there is IPv6 alone launchers' ranks find each other, by MASTER_ADDR and without") {
  for (std::string places : {"MASTER_ADDR=::1 MASTER_PORT=7389", "MASTER_ADDR=localhost MASTER_PORT=7389", "X="}) {
    const auto story
      = "for rank in 0 1; do env " + places
        + " RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 \"$0\" sum & all=\"$all $!\"; done; "
          "for each in $all; do wait $each || exit 1; done";
    run_on_ipv6_host run{{"sh", "-c", story, RINGMASTER_RANK_PROGRAM}};
    if (run.is_skipped())
      return;
    CAPTURE(places);
    CAPTURE(run.error);
    CHECK(run.status == 0);
    CHECK(run.output.find("2 of 2: the sum is 3\n") != std::string::npos);
  }
}

TEST_CASE("hosts: a node that starts while the network is down joins when it is up") {
  const auto story = R"sh(
    cd "$1"
    "$0" coordinator --port 0 --port-file port 2> coordinator.log & c=$!
    until [ -s port ]; do kill -0 $c || exit 1; sleep 0.01; done
    "$0" node --join 127.0.0.1:$(cat port) --devices 2 --name early 2> node.log & n=$!
    until grep -q 'waits for the coordinator at 127.0.0.1:' node.log; do
      kill -0 $n || { cat node.log; exit 1; }
      sleep 0.01
    done
    ip link set lo up
    "$0" info --join 127.0.0.1:$(cat port) --nodes early
    status=$?
    kill $n $c; wait; grep 'waits for' node.log; exit $status)sh";
  ringmaster::test::temporary_directory dir;
  launched_program run{{"unshare", "-rn", "sh", "-c", story, RINGMASTER_PROGRAM, dir.path().string()}};
  const auto status = run.finish();
  CAPTURE(run.error);
  CAPTURE(run.output);
  if (run.error.find("unshare: ") != std::string::npos) {
    MESSAGE("skipped: ", run.error);
    return;
  }
  CHECK(status == 0);
  CHECK(run.output.find("cannot be reached") != std::string::npos);
  CHECK(run.output.find("Network is unreachable") != std::string::npos);
}
