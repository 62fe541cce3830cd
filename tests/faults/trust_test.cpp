// Real processes that have the secret of a cluster, another one, or none.
#include "runtime/trust/secret.hpp"
#include "tests/faults/started_coordinator.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::launch;
using namespace ringmaster::test;

namespace {

std::string text_in(const std::filesystem::path& file) {
  std::ostringstream result;
  result << std::ifstream{file}.rdbuf();
  return result.str();
}

/// `ringmaster COMMAND...` with these variables, as the environment of a user that has no others.
std::vector<std::string> ringmaster_with(const std::vector<std::string>& variables, std::vector<std::string> command) {
  std::vector<std::string> result{"env", "-u", "RINGMASTER_SECRET", "-u", "RINGMASTER_SECRET_FILE"};
  result.insert(result.end(), variables.begin(), variables.end());
  result.push_back(RINGMASTER_PROGRAM);
  result.insert(result.end(), std::make_move_iterator(command.begin()), std::make_move_iterator(command.end()));
  return result;
}

struct trusted_cluster {
  explicit trusted_cluster(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"coordinator", "--port", "0", "--port-file", port_file});
    coordinator.emplace(ringmaster_with({user}, options));
    REQUIRE_MESSAGE(coordinator->wait_until([&] { return std::filesystem::exists(port_file); }), coordinator->error);
    where = "127.0.0.1:" + text_in(port_file);
  }

  launched_program status(std::vector<std::string> options = {}, const std::string& of_user = {}) const {
    options.insert(options.begin(), {"status", where});
    return launched_program{ringmaster_with({of_user.empty() ? user : of_user}, options)};
  }

  temporary_directory dir, other_dir;
  const std::string port_file = (dir.path() / "port").string();
  const std::string user = "XDG_RUNTIME_DIR=" + dir.path().string();
  const std::string other_user = "XDG_RUNTIME_DIR=" + other_dir.path().string(); // who finds no file of the first
  std::optional<launched_program> coordinator;
  std::string where;
};

} // namespace

TEST_CASE("trust: who has the coordinator's secret gets its status, without an option on its host, and no one else") {
  trusted_cluster x;
  auto same_user = x.status();
  CHECK_MESSAGE(same_user.finish() == 0, same_user.error);
  CHECK_FALSE(contains(same_user.output, "no secret is required"));

  auto other_user = x.status({}, x.other_user);
  CHECK(other_user.finish() == 1);
  CHECK_MESSAGE(contains(other_user.error, x.where + " requires the secret of its cluster, and this process has none"),
                other_user.error);
  CHECK(contains(other_user.error, "Copy the secret file that the log of the coordinator at " + x.where + " names"));

  const auto named = x.coordinator->error;
  const auto at = named.find("the secret of the cluster is in ");
  REQUIRE_MESSAGE(at != named.npos, named);
  const auto start = at + std::string{"the secret of the cluster is in "}.size();
  const auto file = named.substr(start, named.find(';', start) - start);
  auto copied = x.status({"--secret-file", file}, x.other_user);
  CHECK_MESSAGE(copied.finish() == 0, copied.error);

  const auto wrong = (x.dir.path() / "wrong").string();
  REQUIRE(!shared_secret::random().create(wrong));
  auto mistaken = x.status({"--secret-file", wrong});
  CHECK(mistaken.finish() == 1);
  CHECK(contains(mistaken.error, "has another secret than this process, which has that of " + wrong));
  auto insecure = x.status({"--insecure"});
  CHECK(insecure.finish() == 1);
  CHECK(contains(insecure.error, "and this process runs with --insecure"));
  auto node = launched_program{ringmaster_with({x.other_user}, {"node", "--join", x.where})};
  CHECK(node.finish() == 1);
  CHECK(contains(node.error, "requires the secret of its cluster"));
  CHECK_MESSAGE(x.coordinator->await_output("(coordinator) was refused: it has no secret"), x.coordinator->error);
}

TEST_CASE("trust: a cluster without a secret says so in its status") {
  trusted_cluster x{{"--insecure"}};
  CHECK(x.coordinator->await_output("every process that can connect"));
  auto refused = x.status();
  CHECK(refused.finish() == 1);
  CHECK(contains(refused.error, "requires no secret (trust.insecure), so it may be any process"));
  for (const auto* command : {"status", "info"}) {
    launched_program asks{ringmaster_with({x.user}, {command, "--join", x.where, "--insecure"})};
    CHECK_MESSAGE(asks.finish() == 0, asks.error);
    CHECK(contains(asks.output, "no secret is required (trust.insecure): every process that can connect may use and "
                                "stop this cluster"));
  }
}

TEST_CASE("trust: nodes exchange bulk data with the secret of their cluster") {
  trusted_cluster x{{"--route.use=link"}};
  std::vector<std::unique_ptr<launched_program>> nodes;
  for (const auto* name : {"one", "two"})
    nodes.push_back(std::make_unique<launched_program>(
      ringmaster_with({x.user}, {"node", "--join", x.where, "--devices", "1", "--name", name, "--route.use=link"})));
  launched_program bench{
    ringmaster_with({x.user}, {"bench", "all_reduce", "--join", x.where, "--devices", "2", "--min-bytes", "1MiB",
                               "--max-bytes", "1MiB", "--samples", "2", "--iterations", "1", "--route.use=link"})};
  CHECK_MESSAGE(bench.finish() == 0, bench.error);
  for (auto& node : nodes) {
    node->child.signal(SIGTERM);
    CHECK(node->finish() == 0);
    CHECK_FALSE(contains(node->error, "was refused"));
    CHECK_MESSAGE(contains(node->error, "bulk connections: "), node->error);
  }
}

TEST_CASE("trust: caf-run makes a secret for a run, which its processes have, and no command line shows") {
  temporary_directory dir;
  // The program keeps what it sees of itself and of the others, and what the file is.
  const auto script = dir.path() / "look";
  std::ofstream{script} << R"(#!/bin/sh
file=${RINGMASTER_OPTIONS##*--trust.secret-file=}
stat -c %a "$file" > permissions
cp "$file" secret
echo "$file" > place
for each in /proc/[0-9]*/cmdline; do tr '\0' '\n' < "$each"; done > lines 2> /dev/null
exec "$0-status" status --join "$RINGMASTER_COORDINATOR"
)";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(RINGMASTER_PROGRAM, dir.path() / "look-status");
  // As ssh, which runs it here; its last argument is what other users see.
  const auto ssh = dir.path() / "ssh";
  std::ofstream{ssh} << "#!/bin/sh\nfor last; do :; done\nprintf '%s\\n' \"$*\" >> ssh-lines\nexec sh -c \"$last\"\n";
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  std::ofstream{dir.path() / "hosts"} << "elsewhere.example slots=1 name=far\nlocalhost slots=1 name=near\n";
  const auto in_dir = "cd " + dir.path().string() + " && exec \"$@\"";
  launched_program run{{"sh", "-c", in_dir, "sh", RINGMASTER_CAF_RUN, "--hostfile", "hosts", "--ssh", ssh.string(),
                        "--address", "127.0.0.1", "--timeout", "20s", "--", script.string()}};
  CHECK_MESSAGE(run.finish() == 0, run.error);
  CHECK_MESSAGE(contains(run.output, "2 nodes"), run.output);
  CHECK(text_in(dir.path() / "permissions") == "600\n");
  auto secret = text_in(dir.path() / "secret");
  REQUIRE(secret.size() > shared_secret::bytes_min);
  secret.pop_back(); // a line break
  const auto as_sent = shared_secret::of(secret, "it")->text();
  for (const auto* lines : {"lines", "ssh-lines"}) {
    const auto seen = text_in(dir.path() / lines);
    CHECK(contains(seen, "RINGMASTER_SECRET && export"));
    CHECK_FALSE(contains(seen, secret));
    CHECK_FALSE(contains(seen, as_sent));
  }
  auto place = text_in(dir.path() / "place");
  place.pop_back();
  CHECK_FALSE(std::filesystem::exists(place)); // gone with the run
}
