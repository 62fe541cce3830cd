// The launcher as a whole, on a ringmaster that is a shell script: no actor runs here.
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sys/stat.h>

using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

/// Every process writes its id down. A node has joined when its own file is there; it says "leaving" when asked to end.
constexpr const char* fake_coordinator = "echo listening; echo 4711 >$5.new; mv $5.new $5; exec sleep 1000";
constexpr const char* fake_node
  = "trap 'echo leaving; exit 0' TERM; printf 'up: %s\\nbegun' \"$said\"; join; sleep 1000 & wait";
constexpr const char* fake_info = "for name in $(echo $5 | tr , ' '); do await $name; done";
/// Writes down its options and the host, and runs the rest here.
constexpr const char* fake_ssh
  = "#!/bin/sh\necho \"$*\" | cut -d ' ' -f 1-9 >>$(dirname $0)/ssh.log\nexec sh -c \"${10}\"\n";
const std::string ssh_options
  = "-o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=10 -o ServerAliveCountMax=3";
constexpr const char* functions = R"(#!/bin/sh
dir=$(dirname "$0")
echo $$ >>$dir/pids
role=$1
name=$7
said=$(echo "$*" | sed 's/ --trust.secret-file=[^ ]*//')
join() { echo $$ >$dir/$name.new; mv $dir/$name.new $dir/$name; }
await() { while ! [ -e $dir/$1 ]; do sleep 0.002; done; }
)";

struct fake_cluster {
  std::string coordinator = fake_coordinator;
  std::string node = fake_node;
  std::string info = fake_info;
  script_directory scripts;

  std::vector<std::string> command(std::vector<std::string> arguments) const {
    auto roles = "case $role in\ncoordinator) " + coordinator + " ;;\nnode) " + node + " ;;\ninfo) " + info
                 + " ;;\nesac\n";
    auto binary = scripts.write("ringmaster", functions + roles);
    std::vector<std::string> result{RINGMASTER_CAF_RUN, "--binary", binary};
    result.insert(result.end(), arguments.begin(), arguments.end());
    return result;
  }

  /// With two nodes on this host, `program` being text for sh. Its process id is written down as well.
  std::vector<std::string> running(const std::string& program) const {
    return command({"--local", "2", "--", "sh", "-c", "dir=" + scripts.path("") + "; echo $$ >>$dir/pids; " + program});
  }

  /// As three ranks on this host.
  std::vector<std::string> as_ranks(const std::string& program, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"--ranks", "3"});
    options.insert(options.end(), {"--", "sh", "-c", "dir=" + scripts.path("") + "; echo $$ >>$dir/pids; " + program});
    return command(options);
  }

  std::vector<pid_t> pids() const {
    std::istringstream text(scripts.read("pids"));
    std::vector<pid_t> result;
    for (pid_t pid = 0; text >> pid;)
      result.push_back(pid);
    return result;
  }

  bool all_ended() const {
    auto list = pids();
    return !list.empty() && std::all_of(list.begin(), list.end(), has_ended);
  }
};

/// The file that caf-run has made, which its options name last.
std::string secret_of(const std::string& options) {
  const std::string key = "--trust.secret-file=";
  const auto at = options.find(key);
  return at == options.npos ? "none" : options.substr(at + key.size(), options.find('\n', at) - at - key.size());
}

} // namespace

TEST_CASE("caf_run: exits with the status of the program and leaves nothing running") {
  fake_cluster cluster;
  launched_program run(cluster.running("sleep 1000 & echo $! >>$dir/pids; exit 7"));
  CHECK(run.finish() == 7);
  CHECK(cluster.pids().size() == 6); // coordinator, two nodes, info, the program and what it left behind
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: orphans of the program are killed before the nodes are asked to leave") {
  fake_cluster cluster;
  cluster.node = "trap 'kill -0 $(cat $dir/stray) 2>/dev/null && echo too early; echo leaving; exit 0' TERM; join; "
                 "sleep 1000 & wait";
  launched_program run(cluster.running("sleep 1000 & echo $! >$dir/stray"));
  CHECK(run.finish() == 0);
  CHECK(contains(run.error, "[node-1] leaving\n"));
  CHECK_FALSE(contains(run.error, "too early"));
  CHECK(has_ended(std::stoi(cluster.scripts.read("stray"))));
}

TEST_CASE("caf_run: Ctrl-Z stops every process, fg continues them") {
  fake_cluster cluster;
  launched_program run(cluster.running("echo up; read x; exit 5"));
  REQUIRE(run.await_output("up\n"));
  const auto stopped_count = [&] {
    auto all = cluster.pids();
    all.push_back(run.child.pid());
    return std::count_if(all.begin(), all.end(), [](pid_t pid) {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string number, name, state;
      return stat >> number >> name >> state && state == "T";
    });
  };
  const auto comes_to = [&](long count) {
    for (auto until = std::chrono::steady_clock::now() + launched_program::limit; stopped_count() != count;)
      if (std::chrono::steady_clock::now() > until)
        return false;
    return true;
  };
  REQUIRE(::kill(run.child.pid(), SIGTSTP) == 0);
  CHECK(comes_to(5)); // the coordinator, two nodes, the program and caf-run
  REQUIRE(::kill(run.child.pid(), SIGCONT) == 0);
  CHECK(comes_to(0));
  run.child.stop();
  CHECK(run.finish() == 5);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: exits with 128 and the signal that ended the program") {
  fake_cluster cluster;
  launched_program run(cluster.running("kill -9 $$"));
  CHECK(run.finish() == 128 + SIGKILL);
}

TEST_CASE("caf_run: leaves the program's streams alone and tells it where the coordinator is") {
  fake_cluster cluster;
  launched_program run(cluster.running("printf %s $RINGMASTER_COORDINATOR; printf own >&2; cat"));
  CHECK(run.await_output("127.0.0.1:4711"));
  run.child.stop();
  CHECK(run.finish() == 0);
  CHECK(run.output == "127.0.0.1:4711");
  CHECK(contains(run.error, "own"));
}

TEST_CASE("caf_run: prefixes what the others say, a line without end included") {
  fake_cluster cluster;
  launched_program run(cluster.running("read x"));
  CHECK(run.await_output("[coordinator] listening\n"));
  CHECK(run.await_output("[node-2] up: node --join 127.0.0.1:4711 --devices 2 --name node-2\n"));
  run.child.stop();
  run.finish();
  CHECK(contains(run.error, "[node-1] begunleaving\n"));
}

TEST_CASE("caf_run: names each node that does not start, with its reason") {
  fake_cluster cluster;
  cluster.node = "echo noise; echo \"no memory for $7\" >&2; exit 3";
  cluster.info = "exec sleep 1000";
  launched_program run(cluster.running("echo must not run"));
  CHECK(run.finish() == 125);
  CHECK(contains(run.error, "caf-run: node-1 did not join: it exited with status 3: no memory for node-1\n"));
  CHECK(contains(run.error, "caf-run: node-2 did not join: it exited with status 3: no memory for node-2\n"));
  CHECK(run.output == "");
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: names the node that has not joined in time, with its last words") {
  fake_cluster cluster;
  cluster.node = "echo \"$7 is thinking\"; join; exec sleep 1000";
  cluster.info = "await node-1; await node-2; echo '{\"missing\":[\"node-2\"]}'; exit 1";
  launched_program run(cluster.running("echo must not run"));
  CHECK(run.finish() == 125);
  CHECK(contains(run.error, "caf-run: node-2 had not joined after 30 s; it said last: node-2 is thinking\n"));
  CHECK_FALSE(contains(run.error, "caf-run: node-1"));
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: says why the coordinator does not come up") {
  fake_cluster cluster;
  cluster.coordinator = "echo 'port 7000 is taken' >&2; exit 1";
  launched_program failing(cluster.running(""));
  CHECK(failing.finish() == 125);
  CHECK(contains(failing.error, "caf-run: the coordinator exited with status 1: port 7000 is taken\n"));

  fake_cluster silent;
  silent.coordinator = "exec sleep 1000";
  launched_program waiting(silent.command({"--local", "1", "--timeout", "300ms", "true"}));
  CHECK(waiting.finish() == 125);
  CHECK(contains(waiting.error, "caf-run: the coordinator did not listen within 0.3 s\n"));
  CHECK(silent.all_ended());
}

TEST_CASE("caf_run: reports a node that dies and lets the program go on") {
  fake_cluster cluster;
  launched_program run(cluster.running("kill -9 $(cat $dir/node-1); read x; exit 5"));
  CHECK(run.await_output("caf-run: node-1 was ended by signal 9 (Killed); the program goes on\n"));
  run.child.stop();
  CHECK(run.finish() == 5);
  CHECK_FALSE(contains(run.error, "node-2 was"));
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: says of a node that dies what it took with it, and of one that ended by itself why") {
  fake_cluster cluster;
  cluster.node = "join; case $name in node-1) exec sleep 1000;; esac; await end; echo 'no memory left' >&2; exit 3";
  cluster.info = R"sh(case $4 in
    --gone) echo "{\"lost\":\"devices 0x1 0x2 of communicator 7 ($5)\",\"communicators\":[7]}" ;;
    *) await node-1; await node-2 ;;
  esac)sh";
  launched_program run(cluster.running("kill -9 $(cat $dir/node-1); read x; exit 5"));
  CHECK(
    run.await_output("caf-run: node-1 was ended by signal 9 (Killed), and took with it devices 0x1 0x2 of communicator "
                     "7 (node-1); the program goes on\n"));
  std::ofstream{cluster.scripts.path("end")} << "now\n";
  CHECK(run.await_output("caf-run: node-2 exited with status 3: no memory left, and took with it devices 0x1 0x2 of "
                         "communicator 7 (node-2); the program goes on\n"));
  run.child.stop();
  CHECK(run.finish() == 5);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: passes a signal to the program first") {
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    fake_cluster cluster;
    launched_program run(cluster.running("trap 'echo caught; exit 9' TERM INT HUP QUIT USR1 USR2; "
                                         "sleep 1000 & echo ready; wait"));
    CHECK(run.await_output("ready\n"));
    ::kill(run.child.pid(), number);
    CHECK(run.finish() == 9);
    CHECK(run.output == "ready\ncaught\n");
    CHECK(cluster.all_ended());
  }
}

TEST_CASE("caf_run: passes the second signal to all, and kills at the third") {
  fake_cluster cluster;
  launched_program run(cluster.running("trap 'echo $((n += 1))' TERM; echo ready; "
                                       "while :; do sleep 1000 & wait $!; done"));
  CHECK(run.await_output("ready\n"));
  ::kill(run.child.pid(), SIGTERM);
  CHECK(run.await_output("ready\n1\n"));
  CHECK_FALSE(contains(run.error, "leaving"));
  ::kill(run.child.pid(), SIGTERM);
  CHECK(run.await_output("[node-1] begunleaving\n"));
  CHECK(run.await_output("[node-2] begunleaving\n"));
  ::kill(run.child.pid(), SIGTERM);
  CHECK(run.finish() == 128 + SIGKILL);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: stops at a signal that comes before the program runs") {
  fake_cluster cluster;
  cluster.info = "echo waiting >&2; touch $dir/asked; exec sleep 1000";
  launched_program run(cluster.running("echo must not run"));
  CHECK(run.wait_until([&] { return std::filesystem::exists(cluster.scripts.path("asked")); }));
  ::kill(run.child.pid(), SIGINT);
  CHECK(run.finish() == 128 + SIGINT);
  CHECK(run.output == "");
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: takes everything with it when it is killed itself") {
  fake_cluster cluster;
  cluster.node = "join; exec sleep 1000";
  launched_program run(cluster.running("echo ready; exec sleep 1000"));
  CHECK(run.await_output("ready\n"));
  ::kill(run.child.pid(), SIGKILL);
  CHECK(run.finish() == 128 + SIGKILL);
  CHECK(cluster.pids().size() == 5);
  CHECK(run.wait_until([&] { return cluster.all_ended(); }));
}

TEST_CASE("caf_run: starts nodes on other hosts through ssh and stops them there") {
  fake_cluster cluster;
  auto ssh = cluster.scripts.write("ssh", fake_ssh);
  auto hostfile = cluster.scripts.write("hosts", "localhost name=near\nbeta.example slots=3 name=far # remote\n");
  launched_program run(cluster.command({"--hostfile", hostfile, "--ssh", ssh, "--address", "alpha.example", "--", "sh",
                                        "-c", "echo $RINGMASTER_COORDINATOR; read x; exit 4"}));
  CHECK(run.await_output("[near] up: node --join alpha.example:4711 --devices 2 --name near --listen-host auto\n"));
  CHECK(run.await_output("[far] up: node --join alpha.example:4711 --devices 3 --name far --listen-host auto\n"));
  CHECK(run.await_output("alpha.example:4711\n"));
  run.child.stop();
  CHECK(run.finish() == 4);
  CHECK(cluster.scripts.read("ssh.log") == ssh_options + " beta.example\n");
  CHECK(contains(run.error, "[near] begunleaving\n"));
  CHECK(contains(run.error, "[far] begunleaving\n"));
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: names the host of a remote node that fails") {
  fake_cluster cluster;
  cluster.info = "exec sleep 1000";
  auto ssh = cluster.scripts.write("ssh", "#!/bin/sh\necho \"ssh: connect to host $9: no route\" >&2\nexit 255\n");
  auto hostfile = cluster.scripts.write("hosts", "beta.example\n");
  launched_program run(cluster.command({"--hostfile", hostfile, "--ssh", ssh, "true"}));
  CHECK(run.finish() == 125);
  CHECK(contains(run.error, "caf-run: node-1 on beta.example did not join: it exited with status 255: "
                            "ssh: connect to host beta.example: no route\n"));
}

TEST_CASE("caf_run: starts nothing where the command line, the hostfile or the program is wrong") {
  fake_cluster cluster;
  launched_program nodes(cluster.command({"true"}));
  CHECK(nodes.finish() == 125);
  CHECK(contains(nodes.error, "caf-run: give either --local N or --hostfile FILE, or --ranks N"));
  launched_program program(cluster.command({"--local", "1", "no-such-program"}));
  CHECK(program.finish() == 127);
  launched_program data(cluster.command({"--local", "1", "/etc/passwd"}));
  CHECK(data.finish() == 126);
  auto hosts = cluster.scripts.write("hosts", "a b\n");
  launched_program hostfile(cluster.command({"--hostfile", hosts, "true"}));
  CHECK(hostfile.finish() == 125);
  CHECK(contains(hostfile.error, hosts + ":1: 'b' is unknown"));
  CHECK_FALSE(std::filesystem::exists(cluster.scripts.path("pids")));
}

TEST_CASE("caf_run: tells each rank which it is, and a client that it is none") {
  fake_cluster cluster;
  launched_program run(cluster.as_ranks("echo $RINGMASTER_RANK $RINGMASTER_WORLD_SIZE $RINGMASTER_LOCAL_RANK "
                                        "$RINGMASTER_COORDINATOR >$dir/rank.$RINGMASTER_RANK"));
  CHECK(run.finish() == 0);
  for (std::string rank : {"0", "1", "2"})
    CHECK(cluster.scripts.read("rank." + rank) == rank + " 3 " + rank + " 127.0.0.1:4711\n");
  CHECK(cluster.pids().size() == 4); // the coordinator and the ranks, and no nodes
  auto within_another = cluster.running("echo ${RINGMASTER_RANK-none} ${OMPI_COMM_WORLD_RANK-none} "
                                        "${OMPI_COMM_WORLD_SIZE-none} $RINGMASTER_RUNNING_COORDINATOR");
  const std::vector<std::string> another{"env", "RINGMASTER_RANK=1", "OMPI_COMM_WORLD_RANK=1",
                                         "OMPI_COMM_WORLD_SIZE=2"};
  within_another.insert(within_another.begin(), another.begin(), another.end());
  launched_program client(within_another);
  CHECK(client.finish() == 0);
  CHECK(client.output == "none none none 127.0.0.1:4711\n");
}

TEST_CASE("caf_run: lines of ranks begin with their number if that is asked for") {
  fake_cluster cluster;
  auto program = "cat; echo out; echo error >&2";
  launched_program tagged(cluster.as_ranks(program, {"--tag-output"}));
  tagged.child.stop();
  CHECK(tagged.finish() == 0);
  for (auto rank : {"[rank 0] ", "[rank 1] ", "[rank 2] "}) {
    CHECK(contains(tagged.output, std::string{rank} + "out\n"));
    CHECK(contains(tagged.error, std::string{rank} + "error\n"));
  }
  launched_program plain(cluster.as_ranks(program));
  plain.child.stop();
  CHECK(plain.finish() == 0);
  CHECK(plain.output == "out\nout\nout\n");
}

TEST_CASE("caf_run: standard input is rank 0's") {
  fake_cluster cluster;
  launched_program run(cluster.as_ranks("cat; echo at the end: $RINGMASTER_RANK"));
  CHECK(run.await_output("at the end: 1\n"));
  CHECK(run.await_output("at the end: 2\n"));
  CHECK_FALSE(contains(run.output, "at the end: 0"));
  run.child.stop();
  CHECK(run.finish() == 0);
}

TEST_CASE("caf_run: names each rank that fails, and its status is that of the first") {
  fake_cluster cluster;
  CHECK(::mkfifo(cluster.scripts.path("go").c_str(), 0600) == 0);
  launched_program run(cluster.as_ranks("case $RINGMASTER_RANK in 1) exit 3;; 2) read x <$dir/go; kill -9 $$;; esac; "
                                        "cat"));
  CHECK(run.await_output("caf-run: rank 1 exited with status 3; 2 others go on\n"));
  std::ofstream{cluster.scripts.path("go")} << "now\n";
  CHECK(run.await_output("caf-run: rank 2 was ended by signal 9 (Killed); 1 other goes on\n"));
  run.child.stop();
  CHECK(run.finish() == 3);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: a rank that its group has lost and that ends with status 0 is named, and counts as a failure") {
  fake_cluster cluster;
  cluster.coordinator = "echo 4711 >$5.new; mv $5.new $5; await go; printf 'lost 1\\nlost 2\\nfinalized 2\\nlost "
                        "77\\nodd\\n' >/dev/fd/$RINGMASTER_NOTICES_FD; exec sleep 1000";
  launched_program run(cluster.as_ranks("case $RINGMASTER_RANK in 1) touch $dir/go; exit 0;; 2) exit 0;; esac; cat"));
  CHECK(run.await_output("caf-run: rank 1 exited with status 0 without finalize, while others were at work; "));
  run.child.stop();
  CHECK(run.finish() == 1);
  CHECK_FALSE(contains(run.error, "rank 2"));
  CHECK_FALSE(contains(run.error, "rank 0"));
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: ranks that were asked to stop may leave as they like") {
  fake_cluster cluster;
  cluster.coordinator = "echo 4711 >$5.new; mv $5.new $5; await go; echo lost 1 >/dev/fd/$RINGMASTER_NOTICES_FD; "
                        "touch $dir/noticed; exec sleep 1000";
  launched_program run(cluster.as_ranks("trap 'touch $dir/go; until [ -e $dir/noticed ]; do sleep 0.01; done; exit 0' "
                                        "TERM; echo ready; sleep 1000 & wait"));
  CHECK(run.await_output("ready\nready\nready\n"));
  ::kill(run.child.pid(), SIGTERM);
  CHECK(run.finish() == 0);
  CHECK_FALSE(contains(run.error, "finalize"));
}

TEST_CASE("caf_run: all that it starts for one run have the same job, and another run another one") {
  std::set<std::string> jobs;
  for (int i = 0; i < 2; ++i) {
    fake_cluster cluster;
    cluster.coordinator = "echo \"$RINGMASTER_JOB\" >$dir/job; echo 4711 >$5.new; mv $5.new $5; exec sleep 1000";
    launched_program run(cluster.as_ranks("echo \"$RINGMASTER_JOB\" >$dir/job.$RINGMASTER_RANK"));
    CHECK(run.finish() == 0);
    const auto job = cluster.scripts.read("job");
    CHECK(job.starts_with("caf-run "));
    for (auto rank : {"0", "1", "2"})
      CHECK(cluster.scripts.read(std::string{"job."} + rank) == job);
    jobs.insert(job);
  }
  CHECK(jobs.size() == 2);
}

TEST_CASE("caf_run: the configuration reaches the coordinator, the nodes and the program") {
  fake_cluster cluster;
  cluster.coordinator = "echo \"$said\" >$dir/words; echo 4711 >$5.new; mv $5.new $5; exec sleep 1000";
  const auto conf = cluster.scripts.write("conf", "[device]\nstreams=3\n");
  const std::vector<std::string> told{"--conf", conf, "--device.memory-bytes=1M", "--log.level=warn"};
  auto command = cluster.command({"--local", "1"});
  command.insert(command.end(), told.begin(), told.end());
  command.insert(command.end(), {"--", "sh", "-c", "echo $RINGMASTER_CONF; echo \"$RINGMASTER_OPTIONS\""});
  launched_program nodes(command);
  CHECK(nodes.finish() == 0);
  const auto secret = "\n--trust.secret-file=" + secret_of(nodes.output) + "\n";
  CHECK(nodes.output == conf + "\n--device.memory-bytes=1M\n--log.level=warn" + secret);
  const auto handed_on = " --conf " + conf + " --device.memory-bytes=1M --log.level=warn\n";
  CHECK(contains(cluster.scripts.read("words"), "--coordinator.store-dir="));
  CHECK(contains(cluster.scripts.read("words"), handed_on.substr(0, handed_on.size() - 1)));
  CHECK_MESSAGE(contains(nodes.error, "--name node-1" + handed_on), nodes.error);
  launched_program ranks(cluster.as_ranks(
    "echo $RINGMASTER_CONF ${RINGMASTER_OPTIONS%--trust.secret-file=*} >$dir/rank.$RINGMASTER_RANK", told));
  CHECK(ranks.finish() == 0);
  for (auto rank : {"0", "1", "2"})
    CHECK(cluster.scripts.read(std::string{"rank."} + rank) == conf + " --device.memory-bytes=1M --log.level=warn\n");
}

TEST_CASE("caf_run: --address is where the coordinator listens, also without other hosts") {
  fake_cluster cluster;
  cluster.coordinator = "echo \"$said\" >$dir/words; echo 4711 >$5.new; mv $5.new $5; exec sleep 1000";
  launched_program run(cluster.as_ranks("echo $RINGMASTER_COORDINATOR", {"--address", "[::1]"}));
  CHECK(run.finish() == 0);
  CHECK(run.output == "[::1]:4711\n[::1]:4711\n[::1]:4711\n");
  CHECK(contains(cluster.scripts.read("words"), " --host ::1 "));
}

TEST_CASE("caf_run: ranks that exit while others go on are reported to the coordinator") {
  fake_cluster cluster;
  cluster.info = "true ;;\nabsent) echo \"$*\" >>$dir/told";
  launched_program run(cluster.as_ranks("case $RINGMASTER_RANK in 1) exit 3;; 2) exit 0;; esac; cat"));
  auto told = [&](const std::string& text) {
    return std::ifstream{cluster.scripts.path("told")}.good() && contains(cluster.scripts.read("told"), text);
  };
  CHECK(run.wait_until([&] {
    return told("1:its process exited with status 3") && told("2:its process exited with status 0");
  }));
  CHECK(told("absent --join 127.0.0.1:4711 --timeout 3s ")); // those that end together in one call
  run.child.stop();
  CHECK(run.finish() == 3);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: a signal goes to all ranks") {
  fake_cluster cluster;
  launched_program run(cluster.as_ranks("trap 'echo caught $RINGMASTER_RANK; exit 9' INT; sleep 1000 & "
                                        "echo ready $RINGMASTER_RANK; wait"));
  for (auto rank : {"0", "1", "2"})
    CHECK(run.await_output(std::string{"ready "} + rank));
  ::kill(run.child.pid(), SIGINT);
  CHECK(run.finish() == 9);
  for (auto rank : {"0", "1", "2"})
    CHECK(contains(run.output, std::string{"caught "} + rank));
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: starts ranks on other hosts through ssh, in the same directory, and stops them there") {
  fake_cluster cluster;
  auto ssh = cluster.scripts.write("ssh", fake_ssh);
  auto hostfile = cluster.scripts.write("hosts", "localhost slots=1\nbeta.example slots=2\n");
  launched_program run(cluster.as_ranks("trap 'echo leaving; exit 0' TERM; echo $(pwd) $RINGMASTER_COORDINATOR "
                                        "$RINGMASTER_RANK $RINGMASTER_LOCAL_RANK; sleep 1000 & wait",
                                        {"--hostfile", hostfile, "--ssh", ssh, "--address", "alpha.example"}));
  auto here = std::filesystem::current_path().string();
  CHECK(run.await_output(here + " alpha.example:4711 0 0\n"));
  CHECK(run.await_output(here + " alpha.example:4711 1 0\n"));
  CHECK(run.await_output(here + " alpha.example:4711 2 1\n"));
  CHECK(cluster.scripts.read("ssh.log") == ssh_options + " beta.example\n" + ssh_options + " beta.example\n");
  ::kill(run.child.pid(), SIGTERM);
  CHECK(run.finish() == 0);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: a rank whose ssh hangs is named with its host, and does not outlast others that failed") {
  fake_cluster cluster;
  cluster.info = "echo '{\"missing\":[\"rank-1\"]}'; exit 1";
  auto ssh = cluster.scripts.write("ssh", "#!/bin/sh\nexec sleep 1000\n");
  auto hostfile = cluster.scripts.write("hosts", "localhost slots=1\nbeta.example slots=2\n");
  auto arguments = cluster.command({"--ranks", "2", "--hostfile", hostfile, "--ssh", ssh, "--address", "alpha.example",
                                    "--timeout", "100ms", "--", "sh", "-c", "exit 4"});
  launched_program run(arguments);
  CHECK(run.finish() == 4);
  CHECK_MESSAGE(contains(run.error, "caf-run: rank 1 on beta.example has not joined after 0.1 s: " + ssh
                                      + " or its program may hang\n"),
                run.error);
  CHECK_MESSAGE(contains(run.error, "caf-run: rank 1 has not joined, and all others ended 3 s ago: killing it\n"),
                run.error);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: a paused rank on another host does not outlast the others by long") {
  // Two of three are stopped, one of them here; the third one goes on for a while.
  fake_cluster cluster;
  auto ssh = cluster.scripts.write("ssh", fake_ssh);
  auto hostfile = cluster.scripts.write("hosts", "localhost slots=1\nbeta.example slots=2\n");
  for (bool here : {false, true}) {
    CAPTURE(here);
    launched_program run(cluster.as_ranks(here ? "[ $RINGMASTER_RANK = 2 ] || kill -STOP $$"
                                               : "[ $RINGMASTER_RANK != 1 ] || kill -STOP $$",
                                          {"--hostfile", hostfile, "--ssh", ssh, "--address", "alpha.example"}));
    CHECK(run.finish() == 128 + SIGKILL);
    CHECK_MESSAGE(contains(run.error, "caf-run: rank 1 on beta.example is stopped by a signal, and all others ended "
                                      "3 s ago: killing it\n"),
                  run.error);
    CHECK(contains(run.error, "caf-run: rank 0 is stopped by a signal") == here);
    CHECK(cluster.all_ended());
  }
}

TEST_CASE("caf_run: a rank that is stopped on another host and goes on again ends as it likes") {
  fake_cluster cluster;
  auto ssh = cluster.scripts.write("ssh", fake_ssh);
  auto hostfile = cluster.scripts.write("hosts", "localhost slots=1\nbeta.example slots=2\n");
  launched_program run(cluster.as_ranks("[ $RINGMASTER_RANK != 1 ] || { (until grep -q '^State:.T' /proc/$$/status; do "
                                        "sleep 0.01; done; sleep 1; kill -CONT $$) & kill -STOP $$; sleep 3; exit 5; }",
                                        {"--hostfile", hostfile, "--ssh", ssh, "--address", "alpha.example"}));
  CHECK(run.finish() == 5);
  CHECK_FALSE(contains(run.error, "killing it"));
}

TEST_CASE("caf_run: takes its hosts from SLURM if no others are named") {
  fake_cluster cluster;
  auto ssh = cluster.scripts.write("ssh", "#!/bin/sh\necho \"$9\" >>$(dirname $0)/ssh.log\nexec sh -c \"${10}\"\n");
  auto command = cluster.command({"--ssh", ssh, "--address", "alpha.example", "--", "true"});
  command.insert(command.begin(),
                 {"env", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=3,2", "SLURMD_NODENAME=n1"});
  launched_program run(command);
  CHECK(run.finish() == 0);
  CHECK(contains(run.error,
                 "[node-1] up: node --join alpha.example:4711 --devices 3 --name node-1 --listen-host auto\n"));
  CHECK(contains(run.error,
                 "[node-2] up: node --join alpha.example:4711 --devices 2 --name node-2 --listen-host auto\n"));
  CHECK(cluster.scripts.read("ssh.log") == "n2\n"); // the other one is this host
}

TEST_CASE("caf_run: a paused rank does not outlast the others by long") {
  fake_cluster cluster;
  launched_program run(cluster.as_ranks("[ $RINGMASTER_RANK != 1 ] || kill -STOP $$"));
  CHECK(run.finish() == 128 + SIGKILL);
  CHECK_MESSAGE(contains(run.error,
                         "caf-run: rank 1 is stopped by a signal, and all others ended 3 s ago: killing it\n"),
                run.error);
  CHECK(cluster.all_ended());
}

TEST_CASE("caf_run: a rank that is stopped and goes on again ends as it likes") {
  fake_cluster cluster;
  launched_program run(cluster.as_ranks("[ $RINGMASTER_RANK != 1 ] || { (until grep -q '^State:.T' /proc/$$/status; do "
                                        "sleep 0.01; done; kill -CONT $$) & kill -STOP $$; exit 5; }"));
  CHECK(run.finish() == 5);
  CHECK_FALSE(contains(run.error, "killing it"));
}
