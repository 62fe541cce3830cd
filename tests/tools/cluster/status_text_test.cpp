#include "tools/cluster/status_text.hpp"

#include "messages/errc.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/text_search.hpp"
#include "tests/tools/clients/cluster_info.hpp"
#include "tests/tools/console/set_columns.hpp"
#include "tools/cluster/device_words.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

constexpr uint64_t milli_ns = 1'000'000;

/// Two nodes of two devices; communicator 7 on all of them, in an all-reduce in which rank 2 hangs.
proto::ClusterStatus cluster_that_waits() {
  proto::ClusterStatus result;
  result.set_time_ns(1'767'225'600'000'000'000); // midnight
  *result.mutable_cluster() = cluster_of(2);
  for (auto& node : *result.mutable_cluster()->mutable_nodes())
    node.set_joined_ns(result.time_ns() - 3'725'000 * milli_ns);
  for (auto& device : *result.mutable_cluster()->mutable_devices())
    device.add_comm_ids(7);
  auto& x = *result.add_communicators();
  x.set_comm_id(7);
  x.set_epoch(2);
  x.set_operations_in_flight(3);
  x.set_operations_ended(16);
  x.set_still_ns(1300 * milli_ns);
  x.set_async_error("rank 4 (device 0x5) was lost: killed");
  for (uint64_t sequence : {17, 18}) {
    auto& op = *x.add_operations();
    op.set_sequence(sequence);
    op.mutable_collective()->set_algorithm("ring");
    op.set_bytes(8u << 20);
    op.set_phase(proto::CommunicatorStatus::Operation::RUNNING);
    op.set_age_ns(1500 * milli_ns);
    op.set_attempts(2);
    op.set_ranks_done(1);
    op.set_world_size(4);
  }
  for (uint64_t id = 1; id <= 4; ++id) {
    auto& rank = *x.add_ranks();
    rank.set_device_id(id);
    rank.set_answers(5);
    rank.set_latest_age_ns(90 * milli_ns);
    rank.mutable_latest()->set_sequence(17);
    rank.mutable_latest()->set_round(3);
    rank.mutable_latest()->set_rounds(6);
    rank.mutable_latest()->set_queued(3);
    auto& bytes = *rank.mutable_latest()->add_received();
    bytes.set_route("messages");
    bytes.set_bytes(6u << 20);
    if (id == 3)
      continue;
    rank.set_doing("waiting for rank 2's block at round 3 of 6");
    rank.add_waits_for(id == 1 ? 3 : 2);
  }
  auto& hung = *x.mutable_ranks(2);
  hung.set_doing("working at round 2 of 6");
  hung.set_late(2);
  hung.set_latest_age_ns(1300 * milli_ns);
  hung.set_silent_ns(1300 * milli_ns);
  hung.mutable_latest()->set_round(2);
  auto& route = *x.add_routes();
  route.set_name("messages");
  route.set_bytes(3u << 30);
  route.set_bytes_per_s(200u << 20);
  return result;
}

/// The same with nothing in flight.
proto::ClusterStatus cluster_that_rests() {
  auto result = cluster_that_waits();
  auto& x = *result.mutable_communicators(0);
  x.clear_operations();
  x.set_operations_in_flight(0);
  x.set_still_ns(0);
  return result;
}

std::string text_of(const proto::ClusterStatus& x) {
  std::string result;
  for (auto& line : status_text(x, "10.0.0.1:7077", std::chrono::hours{1}, {.wide = true}))
    result += line.text + '\n';
  return result;
}

} // namespace

TEST_CASE("status text: tells first what is in flight, whom others wait for and how far each rank is") {
  CHECK(text_of(cluster_that_waits())
        == R"(01:00:00 coordinator at 10.0.0.1:7077: 2 nodes on 1 host, 4 devices (0 free), 1 communicator
communicator 7: 4 ranks, policy shrink, epoch 2, at work; 3 operations in flight, 16 ended well, 0 failed
  rank 4 (device 0x5) was lost: killed
  nothing has moved for 1.3 s
  #17 all_reduce (ring), 8 MiB, called 1.5 s ago, attempt 2: 1 of 4 ranks have finished it
  then: #18 all_reduce (ring), 8 MiB; 1 more
  others wait for rank 2 (device 0x3, node-2 on lab, pid 102): working at round 2 of 6; its process )"
           R"(has been silent for 1.3 s, 2 of its last 5 answers were late
  rank  device  where                   round  received  queued  heard  late  doing
  0     0x1     node-1 on lab, pid 101  3/6    6 MiB     3       0.1 s  0/5   waiting for rank 2's block at round 3 of 6
  1     0x2     node-1 on lab, pid 101  3/6    6 MiB     3       0.1 s  0/5   waiting for rank 2's block at round 3 of 6
  2     0x3     node-2 on lab, pid 102  2/6    6 MiB     3       1.3 s  2/5   working at round 2 of 6; its process )"
           R"(has been silent for 1.3 s, 2 of its last 5 answers were late
  3     0x4     node-2 on lab, pid 102  3/6    6 MiB     3       0.1 s  0/5   waiting for rank 2's block at round 3 of 6
  bytes by route: messages 3 GiB, 200 MiB/s
node-1 on lab, pid 101, here for 1 h 2 min: 0x1 (rank 0 of communicator 7), 0x2 (rank 1 of communicator 7)
node-2 on lab, pid 102, here for 1 h 2 min: 0x3 (rank 2 of communicator 7), 0x4 (rank 3 of communicator 7)
)");
}

TEST_CASE("status text: a narrow page leaves out columns of the ranks' table, and says which") {
  const page_format page{.columns = 100};
  std::string text;
  for (auto& line : status_text(cluster_that_waits(), "h:1", {}, page))
    text += page.lines(line.text);
  check_width(text, 100);
  CHECK_MESSAGE(contains(text, "\n  rank  where                   round  received  heard  doing\n"), text);
  CHECK(contains(text, "\n  Not shown: device, queued, late (--wide shows all)\n"));
}

TEST_CASE("status text: lines about problems have the tone bad or warning") {
  auto lines = status_text(cluster_that_waits(), "h:1", {}, {.wide = true});
  auto tone_of_line = [&](const std::string& begin) {
    for (auto& line : lines)
      if (line.text.starts_with(begin))
        return line.how;
    FAIL("no line starts with ", begin);
    return tone::plain;
  };
  CHECK(tone_of_line("  nothing has moved") == tone::bad);
  CHECK(tone_of_line("  others wait for rank 2") == tone::bad);
  CHECK(tone_of_line("  2     0x3") == tone::bad);
  CHECK(tone_of_line("  3     0x4") == tone::plain);
  CHECK(tone_of_line("  rank 4 (device 0x5)") == tone::warning);
}

TEST_CASE("status text: of many ranks only those with problems are listed") {
  auto status = cluster_that_waits();
  auto& x = *status.mutable_communicators(0);
  for (uint64_t id = 5; id <= 100; ++id) {
    auto& rank = *x.add_ranks();
    rank.set_device_id(id);
    rank.add_waits_for(2);
  }
  auto text = text_of(status);
  CHECK(text.find("  2     0x3") != std::string::npos);
  CHECK(text.find("  3     0x4") == std::string::npos);
  CHECK(text.find("  99 other ranks without trouble\n") != std::string::npos);
}

TEST_CASE("status text: the rank that all wait for does not wait itself; in a cycle there is none") {
  auto x = cluster_that_waits().communicators(0);
  CHECK(waited_for(x) == std::vector<uint32_t>{2}); // 3 waits for 2 itself
  x.mutable_ranks(2)->add_waits_for(0);
  CHECK(waited_for(x).empty());
  x.mutable_ranks(0)->add_waits_for(9); // there is no such rank
  CHECK(waited_for(x).empty());
}

TEST_CASE("status text: a node that does not answer is marked, with the duration") {
  auto status = cluster_that_waits();
  CHECK(text_of(status).find("it has been silent") == std::string::npos);
  status.mutable_cluster()->mutable_nodes(0)->set_silent_ns(1'200 * milli_ns);
  CHECK(text_of(status).find("; it has been silent for 1.2 s: its process is paused, or the network is\n")
        != std::string::npos);
}

TEST_CASE("status text: an idle communicator says since when, and counts what its ranks have done in memory") {
  auto status = cluster_that_rests();
  auto& x = *status.mutable_communicators(0);
  x.set_quiet_ns(2'000 * milli_ns);
  CHECK(text_of(status).find("epoch 2, nothing in flight, the latest ended 2.0 s ago; 16 ended well, 0 failed\n")
        != std::string::npos);
  x.set_operations_met(300);
  x.set_met_quiet_ns(500 * milli_ns);
  CHECK(text_of(status).find("the latest ended 0.5 s ago; 16 ended well, 0 failed, 300 more met in memory\n")
        != std::string::npos);
}

TEST_CASE("status text: an idle communicator is a line, one that is silent says why, what is gone comes last") {
  auto status = cluster_that_rests();
  auto& silent = *status.add_communicators();
  silent.set_comm_id(8);
  silent.set_silent("communicator 8 did not answer within 0.1 s");
  auto& gone = *status.mutable_cluster()->add_gone();
  gone.set_what(proto::ClusterInfo::Gone::NODE);
  gone.set_name("node-3");
  gone.set_cause("its process is gone");
  gone.set_time_ns(status.time_ns());
  auto text = text_of(status);
  CHECK(text.find("epoch 2, has done nothing yet; 16 ended well") != std::string::npos);
  CHECK(text.find("doing") == std::string::npos);
  CHECK(text.find("communicator 8: 0 ranks, policy shrink; it does not say more: communicator 8 did not answer within "
                  "0.1 s\n")
        != std::string::npos);
  CHECK(text.ends_with("gone 01:00:00 node node-3 is lost: its process is gone\n"));
  status.mutable_cluster()->set_journal_trouble("the journal lacks 3 records");
  CHECK(text_of(status).find("\nthe journal lacks 3 records\n") != std::string::npos);
  CHECK(text_of(status).find(insecure_text) == std::string::npos);
  status.mutable_cluster()->set_insecure(true);
  CHECK(text_of(status).find(fmt::format("communicators\n{}\n", insecure_text)) != std::string::npos);
}

TEST_CASE("status text: ages as people say them") {
  CHECK(age_text(40 * milli_ns) == "0.0 s");
  CHECK(age_text(59'900 * milli_ns) == "59.9 s");
  CHECK(age_text(61'000 * milli_ns) == "1 min 1 s");
  CHECK(age_text(3'725'000 * milli_ns) == "1 h 2 min");
  CHECK(age_text(90'000'000 * milli_ns) == "1 d 1 h");
}

TEST_CASE("device words: a device by its number, its place and its ranks; an unknown one with those that there are") {
  CHECK(parse_device("0x1f")->value == 31);
  CHECK(parse_device("4")->value == 4);
  for (auto wrong : {"", "0", "0x", "x4", "4 ", "-1", "rank 3", "0x10000000000000000"})
    CHECK(!parse_device(wrong));
  auto cluster = cluster_of(2);
  auto& group = *cluster.add_communicators();
  group.set_comm_id(7);
  for (uint64_t id : {4, 3})
    group.add_device_ids(id);
  CHECK(*device_words(cluster, {3}) == "device 0x3 (node-2 on lab, pid 102), rank 1 of communicator 7");
  CHECK(*device_words(cluster, {1}) == "device 0x1 (node-1 on lab, pid 101), which is free");
  CHECK(render(device_words(cluster, {9}).error()) == "there is no device 0x9; there are 0x1 0x2 0x3 0x4");
  auto& gone = *cluster.add_gone();
  gone.set_id(9);
  gone.set_cause("killed on request");
  CHECK(render(device_words(cluster, {9}).error()) == "device 0x9 is gone: killed on request");
  CHECK(render(device_words({}, {9}).error()) == "there is no device 0x9, and no other one");
}

TEST_CASE("fault commands: what is missing or too much on the line is said before anybody is asked") {
  auto says = [](const tool_command& command, const std::vector<std::string>& args, const std::string& text) {
    auto result = run_command(command, args);
    CAPTURE(result.err);
    CHECK(result.code == exit_usage);
    CHECK(result.err.find(text) != std::string::npos);
  };
  says(kill_command(), {}, "name the device: ringmaster kill 0x4");
  says(hang_command(), {"rank3"}, "\"rank3\" is no device: give its number");
  says(hang_command(), {"0x4", "--for", "0s"}, "--for must be at least 1ns, such as 5s");
  says(hang_command(), {"0x4", "--for", "soon"}, "soon");
  says(slow_command(), {"0x4"}, "name the delay: ringmaster slow DEVICE DELAY");
  says(slow_command(), {"0x4", "soon"}, "soon");
  says(slow_command(), {"0x4", "5ms", "7"}, "\"7\" is one argument too many");
  says(status_command(), {"nowhere"}, "nowhere");
  says(status_command(), {"here:1", "--join", "there:2"}, "the status of here:1 or of there:2?");
  says(status_command(), {"here:1", "--node.join=there:2"}, "the status of here:1 or of there:2?");
}
