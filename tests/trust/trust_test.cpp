// Real processes that have the secret of a cluster, another one, or none.
#include "runtime/trust/secret.hpp"
#include "tests/faults/started_coordinator.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fmt/format.h>
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
  std::vector<std::string> result{"env",
                                  "-u",
                                  "RINGMASTER_SECRET",
                                  "-u",
                                  "RINGMASTER_SECRET_FILE",
                                  "-u",
                                  "RINGMASTER_CERTIFICATE",
                                  "-u",
                                  "RINGMASTER_KEY",
                                  "-u",
                                  "RINGMASTER_AUTHORITY"};
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

namespace {

/// What `ringmaster certificates` makes for hosts, for alice, who may look, and for bob, who computes.
struct certificate_files {
  certificate_files() {
    std::ofstream{dir.path() / "hosts"} << "localhost slots=1\n127.0.0.1 slots=2\n";
    run({"--hosts", (dir.path() / "hosts").string()});
    run({"--name", "alice", "--role", "observer"});
    run({"--name", "bob", "--role", "client"});
  }

  std::string run(std::vector<std::string> options) const {
    options.insert(options.begin(), {RINGMASTER_PROGRAM, "certificates", "--out", out});
    launched_program makes{options};
    REQUIRE_MESSAGE(makes.finish() == 0, makes.error);
    return makes.output;
  }

  std::vector<std::string> options_of(const std::string& name, std::vector<std::string> others = {}) const {
    others.insert(others.end(), {"--certificate", fmt::format("{}/{}.pem", out, name), "--key",
                                 fmt::format("{}/{}.key", out, name), "--authority", out + "/authority.pem"});
    return others;
  }

  temporary_directory dir;
  const std::string out = (dir.path() / "certificates").string();
};

std::string permissions_of(const std::filesystem::path& file) {
  return fmt::format("{:o}", static_cast<unsigned>(std::filesystem::status(file).permissions()));
}

} // namespace

TEST_CASE("trust: the certificates of hosts are made once, and keys are private") {
  const certificate_files made;
  const std::filesystem::path out{made.out};
  for (const auto* name : {"authority", "localhost", "127.0.0.1", "alice"}) {
    CHECK(permissions_of(out / (std::string{name} + ".key")) == "600");
    CHECK(permissions_of(out / (std::string{name} + ".pem")) == "644");
  }
  const auto before = text_in(out / "localhost.pem");
  std::filesystem::remove(out / "127.0.0.1.pem");
  std::filesystem::remove(out / "127.0.0.1.key");
  const auto again = made.run({"--hosts", (made.dir.path() / "hosts").string()});
  CHECK(contains(again, "kept " + made.out + "/authority.pem"));
  CHECK(contains(again, "kept " + made.out + "/localhost.pem"));
  CHECK(contains(again, "made " + made.out + "/127.0.0.1.pem"));
  CHECK(text_in(out / "localhost.pem") == before);
  std::filesystem::remove(out / "localhost.key");
  launched_program half{{RINGMASTER_PROGRAM, "certificates", "--out", made.out, "--name", "localhost"}};
  CHECK(half.finish() != 0);
  CHECK_MESSAGE(contains(half.error, "localhost.pem exists, and"), half.error);
}

TEST_CASE("trust: a cluster with certificates encrypts everything, and computes what it would without") {
  const certificate_files made;
  for (const auto* bulk : {"encrypted", "authenticated"}) {
    CAPTURE(bulk);
    const std::vector<std::string> ways{"--route.use=link", fmt::format("--trust.bulk={}", bulk)};
    trusted_cluster x{made.options_of("localhost", ways)};
    std::vector<std::unique_ptr<launched_program>> nodes;
    for (const auto* name : {"one", "two"}) {
      auto options = made.options_of("127.0.0.1", ways);
      options.insert(options.begin(), {"node", "--join", x.where, "--devices", "1", "--name", name});
      nodes.push_back(std::make_unique<launched_program>(ringmaster_with({x.other_user}, options)));
    }
    auto options = made.options_of("bob", ways);
    options.insert(options.begin(), {"bench", "all_reduce", "--join", x.where, "--devices", "2", "--min-bytes", "1K",
                                     "--max-bytes", "4MiB", "--factor", "64", "--samples", "2", "--iterations", "1"});
    launched_program bench{ringmaster_with({x.other_user}, options)};
    CHECK_MESSAGE(bench.finish() == 0, bench.error); // it compares all results
    for (const auto* command : {"status", "info"}) {
      auto asks = made.options_of("alice", {command, "--join", x.where});
      launched_program status{ringmaster_with({x.other_user}, asks)};
      CHECK_MESSAGE(status.finish() == 0, status.error);
      CHECK_MESSAGE(contains(status.output, "connections between processes are encrypted: TLS 1.3"), status.output);
    }
    for (auto& node : nodes) {
      node->child.signal(SIGTERM);
      CHECK(node->finish() == 0);
      CHECK_FALSE(contains(node->error, "was refused"));
      CHECK_MESSAGE(contains(node->error, "bulk connections: "), node->error);
    }
  }
}

TEST_CASE("trust: processes without the right certificate get a reason, and the coordinator logs it") {
  const certificate_files made, others;
  const auto asks = [&](const std::vector<std::string>& options, const std::string& error, const std::string& log) {
    CAPTURE(error);
    trusted_cluster x{made.options_of("localhost")}; // one logs a line a second
    auto status = x.status(options);
    CHECK(status.finish() == 1);
    CHECK_MESSAGE(contains(status.error, error), status.error);
    CHECK_MESSAGE(x.coordinator->await_output(log), x.coordinator->error);
  };
  asks({"--insecure"}, "requires TLS with certificates on both sides, and this process has none",
       "it has no certificate and encrypts nothing, and TLS is required");
  asks(others.options_of("alice"), "that the authority of this process has not signed",
       "(coordinator) was refused: it refuses this process's certificate");
  const trusted_cluster x{made.options_of("localhost")};
  auto half = x.status({"--certificate", made.out + "/alice.pem"});
  CHECK(half.finish() == 1);
  CHECK_MESSAGE(contains(half.error, "TLS needs three files"), half.error);
  auto right = x.status(made.options_of("alice"));
  CHECK_MESSAGE(right.finish() == 0, right.error);
}

TEST_CASE("trust: caf-run --tls gives each host a certificate, which no command line shows") {
  temporary_directory dir;
  const auto script = dir.path() / "look";
  std::ofstream{script} << R"(#!/bin/sh
for each in /proc/[0-9]*/cmdline; do tr '\0' '\n' < "$each"; done > lines 2> /dev/null
exec "$0-status" status --join "$RINGMASTER_COORDINATOR"
)";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(RINGMASTER_PROGRAM, dir.path() / "look-status");
  const auto ssh = dir.path() / "ssh"; // as ssh, which runs it here
  std::ofstream{ssh} << "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n";
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  std::ofstream{dir.path() / "hosts"} << "elsewhere.example slots=1 name=far\nlocalhost slots=1 name=near\n";
  const auto in_dir = "cd " + dir.path().string() + " && exec \"$@\"";
  launched_program run{{"sh", "-c", in_dir, "sh", RINGMASTER_CAF_RUN, "--tls", "--hostfile", "hosts", "--ssh",
                        ssh.string(), "--address", "127.0.0.1", "--timeout", "20s", "--", script.string()}};
  CHECK_MESSAGE(run.finish() == 0, run.error);
  CHECK_MESSAGE(contains(run.output, "2 nodes"), run.output);
  CHECK(contains(run.output, "connections between processes are encrypted: TLS 1.3"));
  CHECK(contains(text_in(dir.path() / "lines"), "export RINGMASTER_CERTIFICATE"));
  CHECK_FALSE(contains(text_in(dir.path() / "lines"), "PRIVATE KEY"));
}
