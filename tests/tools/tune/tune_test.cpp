#include "actors/configuration/configuration.hpp"
#include "actors/configuration/settings.hpp"
#include "messages/errc.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/clients/cluster_info.hpp"
#include "tools/options/commands.hpp"
#include "tools/tune/tune_fit.hpp"
#include "tools/tune/tune_measure.hpp"
#include "tools/tune/tune_report.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// A machine of which we know what it takes.
options known_machine() {
  options x;
  x.costs.operation = 50us;
  x.costs.latency = 120us;
  x.costs.bandwidth = 2'000'000'000;
  x.costs.message = 7us;
  x.costs.host_latency = 15us;
  x.costs.host_bandwidth = 9'000'000'000;
  x.costs.local_operation = 30us;
  x.costs.local_rank = 4us;
  x.costs.local_message = 3us;
  x.costs.local_bandwidth = 12'000'000'000;
  x.costs.local_reduction_rate = 6'000'000'000;
  x.costs.local_memory_bandwidth = 9'000'000'000;
  x.costs.local_cache_bytes = 4u << 20;
  x.costs.shared_memory_operation = 10us;
  x.costs.joint_rank = 1us;
  x.costs.joint_bandwidth = 15'000'000'000;
  x.costs.training_call = 130us;
  x.costs.training_receive = 310us;
  return x;
}

const std::vector<uint32_t> two_hosts_of_four{0, 0, 0, 0, 1, 1, 1, 1};

/// What it would measure.
std::vector<cost_sample> samples_of(const options& machine) {
  std::vector<cost_sample> result;
  auto add = [&](transport by, proto::CollectiveKind kind, const char* algorithm, uint32_t ranks, uint64_t bytes,
                 std::vector<uint32_t> hosts = {}) {
    cost_sample x{by, kind, algorithm, ranks, bytes, 1, std::move(hosts)};
    x.seconds = *estimate_of(x, machine, 2);
    result.push_back(x);
  };
  for (uint32_t ranks : {2, 8})
    for (uint64_t bytes : {8u, 64u << 10, 1u << 20, 16u << 20}) {
      for (auto name : {"ring", "tree", "halving_doubling", "naive", "direct"}) {
        add(transport::process, proto::ALL_REDUCE, name, ranks, bytes);
        add(transport::network, proto::ALL_REDUCE, name, ranks, bytes);
      }
      for (auto name : {"hierarchical", "ring", "butterfly"})
        if (ranks == 8)
          add(transport::network, proto::ALL_REDUCE, name, ranks, bytes, two_hosts_of_four);
      for (auto name : {"tree", "naive", "direct"})
        add(transport::process, proto::BROADCAST, name, ranks, bytes);
    }
  add(transport::training, proto::ALL_REDUCE, "direct", 2, 200'000);
  add(transport::training, proto::ALL_GATHER, "direct", 2, 100'000);
  add(transport::training, proto::SEND_RECV, "direct", 2, 16'384);
  return result;
}

} // namespace

TEST_CASE("tune: finds the constants of a machine from what operations took on it") {
  auto machine = known_machine();
  auto samples = samples_of(machine);
  auto fitted = fit_costs(samples, {}, 2);
  REQUIRE(fitted);
  auto near = [](auto found, auto known) {
    return static_cast<double>(found) == doctest::Approx(static_cast<double>(known)).epsilon(0.01);
  };
  auto &found = fitted->values.costs, &known = machine.costs;
  CHECK(near(found.operation.count(), known.operation.count()));
  CHECK(near(found.latency.count(), known.latency.count()));
  CHECK(near(found.bandwidth, known.bandwidth));
  CHECK(near(found.message.count(), known.message.count()));
  CHECK(near(found.host_latency.count(), known.host_latency.count()));
  CHECK(near(found.host_bandwidth, known.host_bandwidth));
  CHECK(near(found.local_bandwidth, known.local_bandwidth));
  CHECK(near(found.local_reduction_rate, known.local_reduction_rate));
  CHECK(near(found.local_memory_bandwidth, known.local_memory_bandwidth));
  CHECK(found.local_cache_bytes == known.local_cache_bytes);
  CHECK(near(found.joint_rank.count(), known.joint_rank.count()));
  CHECK(near(found.joint_bandwidth, known.joint_bandwidth));
  CHECK(near(found.training_call.count(), known.training_call.count()));
  CHECK(near(found.training_receive.count(), known.training_receive.count()));
  CHECK(fitted->walked.residual < 0.01);
  for (const auto& x : samples)
    CHECK(*estimate_of(x, fitted->values, 2) == doctest::Approx(x.seconds).epsilon(0.02));
}

TEST_CASE("tune: constants of a way that was not measured stay") {
  auto machine = known_machine();
  auto fitted = fit_costs({}, machine, 2);
  REQUIRE(fitted);
  CHECK(costs_section(fitted->values, "x") == costs_section(machine, "x"));
  auto samples = samples_of(machine);
  std::erase_if(samples, [](auto& x) { return !x.hosts.empty(); });
  fitted = fit_costs(samples, {}, 2);
  REQUIRE(fitted);
  CHECK(fitted->values.costs.host_latency == options{}.costs.host_latency);
  CHECK(fitted->values.costs.host_bandwidth == options{}.costs.host_bandwidth);
}

TEST_CASE("tune: a bandwidth that was not seen is not fitted") {
  const auto machine = known_machine();
  auto up_to = [&](uint64_t bytes_max, transport by) {
    auto samples = samples_of(machine);
    std::erase_if(samples, [&](auto& x) { return x.bytes > bytes_max || x.by != by; });
    return fit_costs(samples, machine, 2);
  };
  auto refused = up_to(8, transport::network);
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::aborted);
  CHECK(render(refused.error())
          .find("the bandwidth of messages between processes cannot be determined: bytes take at most 0.")
        != std::string::npos);
  CHECK(up_to(16u << 20, transport::network));
  CHECK(!up_to(8, transport::process));
  // All of it fits into the caches: what is past them stays as it was.
  auto cached = up_to(64u << 10, transport::process);
  REQUIRE(cached);
  CHECK(cached->unseen == std::vector<std::string>{"local-memory-bandwidth"});
  CHECK(cached->values.costs.local_memory_bandwidth == machine.costs.local_memory_bandwidth);
  CHECK(cached->values.costs.local_cache_bytes == machine.costs.local_cache_bytes);
  CHECK(fit_text(*cached).find("does not determine them: local-memory-bandwidth\n") != std::string::npos);
}

TEST_CASE("tune: sizes that do not determine a bandwidth are refused before the measurement") {
  auto refusal = [](const char* transport, const char* bytes) {
    auto result = run_command(tune_command(), {"--transport", transport, "--max-bytes", bytes});
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(refusal("network", "64K")
        == "ringmaster tune: --max-bytes 64K: such sizes do not determine a bandwidth between processes; use 2M or "
           "more, or --check, which fits nothing\n");
  CHECK(refusal("all", "1M").find("between processes; use 2M or more") != std::string::npos);
  CHECK(refusal("process", "64K").find("in a process; use 1M or more") != std::string::npos);
}

TEST_CASE("tune: of a joined cluster it measures two nodes, one rank of each, and all ranks, none of them twice") {
  auto sizes = [](const rank_layout& ranks) {
    std::vector<size_t> result;
    for (auto& x : groups_of(ranks, true))
      result.push_back(x.devices.size());
    return result;
  };
  using list = std::vector<size_t>;
  CHECK(sizes(layout_of({1, 2, 3, 4, 5, 6, 7, 8}, cluster_of(4))) == list{2, 4, 8});
  CHECK(sizes(layout_of({1, 2, 3, 4}, cluster_of(2))) == list{2, 4});
  CHECK(sizes(layout_of({1, 2}, cluster_of(1))) == list{2});
  CHECK(groups_of(layout_of({1, 2, 3}, cluster_of(2)), true).front().devices
        == std::vector{device_id{1}, device_id{3}});
}

TEST_CASE("tune: the hosts of a joined cluster are its hosts, or its processes where those share no memory") {
  auto cluster = cluster_of(4);
  const std::vector<uint64_t> all{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(groups_of(layout_of(all, cluster), true).back().hosts.empty());
  CHECK(groups_of(layout_of(all, cluster), false).back().hosts == std::vector<uint32_t>{0, 0, 1, 1, 2, 2, 3, 3});
  cluster.mutable_nodes(2)->set_hostname("attic");
  cluster.mutable_nodes(3)->set_hostname("attic");
  CHECK(groups_of(layout_of(all, cluster), true).back().hosts == std::vector<uint32_t>{0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("tune: what it writes is what is read") {
  temporary_directory dir;
  auto file = dir.path() / "tuned.conf";
  std::ofstream{file} << costs_section(known_machine(), "measured somewhere");
  configuration cfg;
  CHECK(!cfg.read(std::vector<std::string>{}, file));
  CHECK(costs_section(cfg.values(), "x") == costs_section(known_machine(), "x"));
  CHECK(cfg.origin_of("costs") == file.string());
  CHECK(cfg.origin_of("device") == "the defaults");
  CHECK(network_costs(cfg.values()).latency_s == doctest::Approx(120e-6));
  configuration other;
  CHECK(!other.read(std::vector<std::string>{"--costs.latency=1us"}, file));
  CHECK(other.origin_of("costs") == file.string() + " and the command line");
  configuration refused;
  CHECK(refused.read(std::vector<std::string>{"--costs.bandwidth=0"}, std::nullopt));
}

TEST_CASE("tune: the comparison says which pick was not the fastest") {
  cost_sample direct{transport::process, proto::ALL_REDUCE, "direct", 8, 8, 30e-6};
  auto ring = direct;
  ring.algorithm = "ring";
  ring.seconds = 20e-6;
  auto text = comparison_text({direct, ring}, known_machine(), 2);
  REQUIRE(text);
  CHECK(text->find("picked: direct, 1.50 times the fastest, ring: NOT within 20 %") != std::string::npos);
  CHECK(text->find("0 of 1 picks the fastest") != std::string::npos);
  ring.seconds = 200e-6;
  CHECK(comparison_text({direct, ring}, known_machine(), 2)->find("picked: direct, the fastest") != std::string::npos);
}
