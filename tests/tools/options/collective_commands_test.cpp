#include "tests/support/file_content.hpp"
#include "tools/options/commands.hpp"

#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/tools/console/set_columns.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// Lines are not wrapped, so that texts can be found in them.
outcome run(tool_command (*which)(), std::vector<std::string> args) {
  if (which == simulate_command || which == explain_command)
    args.insert(args.begin() + (args.empty() || args.front().starts_with("-") ? 0 : 1), "--wide");
  return run_command(which(), args);
}

} // namespace

TEST_CASE("simulate: says how long an algorithm takes, and by its formula") {
  auto result = run(simulate_command, {"all_reduce", "--algorithm=ring", "--ranks", "8", "--bytes", "1G"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "all_reduce, ring, 8 ranks, 1 GiB: 14 rounds\n"));
  CHECK(contains(result.out, "14 x 5 us + 1.75 GiB / 50.00 GB/s\n"));
  CHECK(contains(result.out, "bus bandwidth        49.91 GB/s\n"));
}

TEST_CASE("simulate: of links between hosts that are alike, the class is named and not one of them") {
  const std::vector<std::string> ring{"all_reduce", "--algorithm=ring", "--ranks=16", "--bytes=1M"};
  for (auto* hosts : {"2", "4"}) {
    auto call = ring;
    call.insert(call.end(), {"--hosts", hosts});
    auto found = run(simulate_command, call);
    CHECK_MESSAGE(contains(found.out,
                           fmt::format("most of it in 30 messages between hosts ({} links alike), 100 %", hosts)),
                  found.out);
    CHECK(!contains(found.out, "->"));
    call.push_back("--slow-link=7-8=4");
    auto slow = run(simulate_command, call);
    CHECK_MESSAGE(contains(slow.out, "most of it in 30 messages 7 -> 8, "), slow.out);
  }
  auto within = ring;
  within.insert(within.end(), {"--hosts=2", "--intra-latency=20us"});
  auto inside = run(simulate_command, within);
  CHECK_MESSAGE(contains(inside.out, "messages within hosts (14 links alike), "), inside.out);
}

TEST_CASE("simulate: a link is named where it stands out, and none where all are alike") {
  const std::vector<std::string> ring{"all_reduce", "--algorithm=ring", "--ranks=8", "--bytes=1G"};
  auto uniform = run(simulate_command, ring);
  CHECK(contains(uniform.out, "all 16 ports alike, "));
  CHECK(!contains(uniform.out, "most of it in"));
  auto slow_link = ring;
  slow_link.push_back("--slow-link=2-3=4");
  auto slow = run(simulate_command, slow_link);
  CHECK_MESSAGE(contains(slow.out, "most of it in 14 messages 2 -> 3, "), slow.out);
  CHECK(contains(slow.out, "2 of 16 ports alike, "));
  auto rate = ring;
  rate.push_back("--reduction-rate=1GB/s");
  auto work = run(simulate_command, rate);
  CHECK_MESSAGE(contains(work.out, "most of it in 7 pieces of work (8 ranks alike), "), work.out, work.err);
  auto root = run(simulate_command, {"reduce", "--algorithm=naive", "--ranks=8", "--bytes=1G"});
  CHECK_MESSAGE(contains(root.out, "busiest              the way into rank 0, "), root.out);
}

TEST_CASE("simulate: adding in rank order takes longer, and scratch, where the order matters") {
  std::vector<std::string> args{"all_reduce", "--algorithm=ring", "--ranks", "8", "--bytes", "1G", "--deterministic"};
  auto result = run(simulate_command, args);
  CHECK(result.code == 0);
  CHECK(contains(result.out, "scratch              3.62 GiB at most, to add in rank order\n"));
  CHECK(contains(result.out, "sent                 "));
  CHECK(!contains(result.out, "by its formula"));
  args.push_back("--datatype=int32");
  CHECK(contains(run(simulate_command, args).out, "by its formula"));
}

TEST_CASE("simulate: without an algorithm it compares all, and as JSON a line each") {
  auto table = run(simulate_command, {"all_reduce"});
  auto json = run(simulate_command, {"all_reduce", "--json", "--bytes", "64K"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "\nring "));
  CHECK(contains(table.out, "\nnaive "));
  CHECK(std::count(table.out.begin(), table.out.end(), '\n') == 2 + std::count(json.out.begin(), json.out.end(), '\n'));
  CHECK(contains(json.out, R"({"kind":"all_reduce","algorithm":"ring","ranks":8,"bytes":65536,"time_ps":72293760,)"));
}

TEST_CASE("simulate: pieces are cut for the network, or as given") {
  std::vector<std::string> args{"all_reduce", "--algorithm=double_tree", "--ranks=64", "--bytes=256M"};
  CHECK(contains(run(simulate_command, args).out, "  pieces of            2 MiB\n"));
  auto json = parse_json(run(simulate_command, {args[0], args[1], args[2], args[3], "--json"}).out);
  REQUIRE(json.engaged());
  CHECK(json->at("piece_bytes") == 2 << 20);
  CHECK(json->at("time_ps") < 14e9); // 31.4 ms in pieces of 128 KiB
  args.push_back("--chunk=128K");
  CHECK(contains(run(simulate_command, args).out, "  pieces of            128 KiB\n"));
  CHECK(!contains(run(simulate_command, {"all_reduce", "--algorithm=ring"}).out, "pieces of"));
  CHECK(contains(run(explain_command, {"all_reduce", "--ranks=64", "--bytes=256M", "--latency=5us",
                                       "--bandwidth=50GB/s", "--costs.message=0s"})
                   .out,
                 "; pieces of 2 MiB\n"));
}

TEST_CASE("draw: pieces are for algorithms that have some, also where the first is drawn") {
  CHECK(contains(run(draw_command, {"all_reduce", "--chunk=1"}).err,
                 "--chunk: ring does not cut its data into pieces"));
  CHECK(run(draw_command, {"all_reduce", "--algorithm=chain", "--chunk=1"}).code == 0);
}

TEST_CASE("simulate: all algorithms are what there is without a name, also where all are asked for") {
  CHECK(run(simulate_command, {"gather", "--algorithm=all"}).out == run(simulate_command, {"gather"}).out);
}

TEST_CASE("explain: what a barrier does not do is no reason, and what it has not is refused") {
  CHECK(!contains(run(explain_command, {"barrier"}).out, "less copying"));
  CHECK(run(explain_command, {"barrier", "--bytes=64"}).err == "ringmaster explain: --bytes: barrier moves no data\n");
}

TEST_CASE("hosts: what is drawn, simulated and explained on several is another schedule, and says where ranks lie") {
  const std::vector<std::string> told{"all_reduce", "--algorithm=hierarchical", "--ranks=5"};
  auto on_hosts = [&](const char* hosts) {
    auto result = told;
    result.push_back(std::string{"--hosts="} + hosts);
    return result;
  };
  auto drawn = run(draw_command, on_hosts("3,2"));
  CHECK(contains(drawn.out, "all_reduce: hierarchical, 5 ranks, on hosts 0 1 2 | 3 4\n"));
  CHECK(contains(drawn.out, "round 5\n")); // 2 within, 2 across, 2 within
  CHECK(!contains(drawn.out, "round 6\n"));
  CHECK(contains(run(draw_command, told).out, "round 7\n"));
  CHECK(contains(run(simulate_command, on_hosts("3,2")).out, "5 ranks, 1 MiB: 6 rounds"));
  CHECK(contains(run(simulate_command, on_hosts("1")).out, "5 ranks, 1 MiB: 8 rounds"));
}

TEST_CASE("explain: on several hosts it says what goes across and what stays, and what is picked for that") {
  const std::vector<std::string> slow{"all_reduce", "--ranks=16", "--bytes=16M", "--latency=50us", "--bandwidth=1GB/s"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), slow.begin(), slow.end());
    return run(explain_command, more);
  };
  auto flat = with({}), levels = with({"--hosts=4", "--intra-latency=1us", "--intra-bandwidth=100GB/s"});
  CHECK(!contains(flat.out, "picked: hierarchical"));
  CHECK(contains(levels.out, "picked: hierarchical"));
  CHECK(contains(levels.out, "; within a host 1 us, 100 GB/s\n"));
  CHECK(contains(levels.out, "in latencies (6 across, 6 within)"));
  CHECK(contains(levels.out, "(24 MiB across, 24 MiB within)"));
  CHECK(with({"--intra-latency=1us"}).err == "ringmaster explain: --intra-latency: it needs --hosts\n");
  CHECK(with({"--hosts=4", "--transport=process"}).code == 2);
  CHECK(run(explain_command, {"all_reduce", "--ranks=512", "--hosts=64"}).err
        == "ringmaster explain: --hosts: 512 ranks on such hosts are too many to plan; use fewer, or `ringmaster "
           "simulate`\n");
}

TEST_CASE("simulate: a broken link is an error that says who waits") {
  auto result = run(simulate_command, {"all_reduce", "--algorithm", "ring", "--ranks", "3", "--broken-link", "0-1"});
  CHECK(result.code == 1);
  CHECK(contains(result.out, "the link 0-1 is broken: rank 0 waits in round 0 to send to rank 1; "));
}

TEST_CASE("simulate: writes a trace of one algorithm") {
  temporary_directory dir;
  auto file = dir.path() / "trace.json";
  auto result = run(simulate_command, {"all_reduce", "--algorithm", "ring", "--ranks", "4", "--trace", file.string()});
  CHECK(result.code == 0);
  CHECK(contains(content_of(file), R"("name":"rank 3")"));
  CHECK(run(simulate_command, {"all_reduce", "--trace", file.string()}).code == 2);
  CHECK(run(simulate_command, {"all_reduce", "--algorithm", "ring", "--trace", "/nowhere/x"}).code == 1);
}

TEST_CASE("simulate: wrong options are answered with a sentence") {
  auto refused = [](const std::vector<std::string>& args) {
    auto result = run(simulate_command, args);
    CHECK(result.code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(refused({}) == "ringmaster simulate: which collective? all_reduce, for example; --help lists them\n");
  CHECK(refused({"all_reduce", "--ranks", "x"})
        == "ringmaster simulate: --ranks: \"x\" is not an integer from 1 to 65536\n");
  CHECK(contains(refused({"all_reduce", "--intra-latency", "2us"}), "--intra-latency: all ranks are on one host"));
  CHECK(refused({"all_gather", "--bytes", "16"})
        == "ringmaster simulate: --bytes 16: less than an element of float32 for each of 8 ranks; 32 would be one\n");
  CHECK(refused({"all_reduce", "--bytes", "1.5M"}).find("is not a whole number of bytes") != std::string::npos);
  CHECK(refused({"all_reduce", "--hosts", "3"})
        == "ringmaster simulate: --hosts: 8 ranks cannot fill 3 hosts evenly; give the ranks of each host, such as "
           "4,4\n");
  CHECK(refused({"all_reduce", "--ranks", "1", "--hosts", "2"})
        == "ringmaster simulate: --hosts: 1 rank cannot fill 2 hosts evenly\n");
  CHECK(refused({"all_reduce", "--hosts", "4,3"})
        == "ringmaster simulate: --hosts: the hosts have 7 ranks together, and there are 8\n");
  CHECK(refused({"all_reduce", "--slow-link", "1-2"})
        == "ringmaster simulate: --slow-link: \"1-2\" is not two ranks and a factor such as 2-3=10\n");
  CHECK(refused({"all_reduce", "--slow-link", "1-9=2"})
        == "ringmaster simulate: the link 1-9 wants a rank 9, and there are ranks 0 to 7\n");
  CHECK(refused({"all_reduce", "--bytes"})
        == "ringmaster simulate: --bytes needs a value; see ringmaster simulate --help\n");
  CHECK(refused({"all_reduce", "--bytes", "10"})
        == "ringmaster simulate: --bytes 10: not a whole number of float32 elements of 4 bytes; 8 or 12 would be\n");
  CHECK(refused({"all_reduce", "--root", "1"})
        == "ringmaster simulate: --root: all_reduce has no root; reduce, broadcast, gather, scatter, send_recv have "
           "one\n");
  CHECK(refused({"reduce", "--peer", "1"}) == "ringmaster simulate: --peer: reduce has no peer; send_recv has one\n");
  CHECK(refused({"all_reduce", "--byte", "8"})
        == "ringmaster simulate: there is no option --byte; did you mean --bytes? Or see ringmaster simulate --help\n");
  CHECK(refused({"all_reduce", "--fast"})
        == "ringmaster simulate: there is no option --fast; see ringmaster simulate --help\n");
  CHECK(refused({"all_reduce", "--bytes", "3"})
        == "ringmaster simulate: --bytes 3: not a whole number of float32 elements of 4 bytes; 4 would be\n");
  CHECK(refused({"all_gather", "--bytes", "10"})
        == "ringmaster simulate: --bytes 10: not a whole number of float32 elements of 4 bytes; 32 would be\n");
  CHECK(refused({"all_reduce", "--bytes", "0"})
        == "ringmaster simulate: --bytes 0: less than an element of float32, which has 4 bytes\n");
  CHECK(refused({"barrier", "--bytes", "64"}) == "ringmaster simulate: --bytes: barrier moves no data\n");
  for (auto* option : {"--deterministic", "--reduction-rate=1GB/s"})
    CHECK(contains(refused({"broadcast", option}), ": broadcast does not reduce\n"));
  CHECK(contains(refused({"all_reduce", "--algorithm", "ring", "--chunk", "64K"}), "--chunk: ring does not cut"));
  CHECK(contains(refused({"reduce_all"}), "there is no collective \"reduce_all\"; there are: all_reduce, "));
}

TEST_CASE("explain: names what would be picked, why, and the others") {
  auto result = run(explain_command, {"all_reduce", "--ranks", "8", "--bytes", "1M", "--latency", "5us", "--bandwidth",
                                      "50GB/s", "--costs.operation=0s"});
  CHECK(result.code == 0);
  CHECK(contains(result.out,
                 "all_reduce, 8 ranks, 1 MiB, latency 5 us, bandwidth 50 GB/s\nconstants: the command line, then "));
  CHECK(contains(result.out, "\npicked: "));
  CHECK(contains(result.out,
                 "ring                        107 us  70 us in latencies (14) and 36.7 us on the wire (1.75 MiB)\n"));
  CHECK(contains(result.out, "\nby size, tried at powers of two: "));
  CHECK(run(explain_command, {"all_reduce", "--algorithm", "ring"}).code == 2);
  CHECK(run(explain_command, {"all_reduce", "--bytes", "6"}).err
        == "ringmaster explain: --bytes 6: not a whole number of float32 elements of 4 bytes; 4 or 8 would be\n");
  CHECK(contains(run(explain_command, {"all_gather", "--root", "1"}).err, "--root: all_gather has no root"));
  CHECK(contains(run(explain_command, {"all_gather", "--bytes", "8"}).err, "less than an element of float32"));
  CHECK(contains(run(explain_command, {"all_reduce", "--bandwidth", "400Gbps"}).out, "bandwidth 50 GB/s"));
  CHECK(contains(run(explain_command, {"--help-all"}).out, "--reduction-rate"));
}

TEST_CASE("simulate: a narrow terminal has the columns that matter most, and a list of the others") {
  const set_columns narrow{"70"};
  auto table = run_command(simulate_command(), {"all_reduce", "--ranks=4"});
  CHECK(contains(table.out, "Not shown: algorithm bw, rounds, messages, sent (--wide shows all)\n"));
  CHECK(contains(table.out, "\nalgorithm                    time        bus bw   busiest\n"));
  check_width(table.out, 70);
  check_width(run_command(simulate_command(), {"all_reduce", "--ranks=4", "--broken-link=0-1"}).out, 70);
  CHECK(contains(run(simulate_command, {"all_reduce", "--ranks=4"}).out, " messages "));
}

TEST_CASE("explain: lines are as narrow as the terminal, and wide where that is asked for") {
  const set_columns narrow{"80"};
  const std::vector<std::string> call{"all_reduce", "--ranks=64", "--transport=network"};
  check_width(run_command(explain_command(), call).out, 80);
  const auto wide = run(explain_command, call).out;
  CHECK(std::ranges::count(wide, '\n') < std::ranges::count(run_command(explain_command(), call).out, '\n'));
}

TEST_CASE("explain: ranks of one process share its cores, and have shared-memory operations") {
  temporary_directory dir;
  auto file = (dir.path() / "tuned.conf").string();
  std::ofstream{file} << "[costs]\njoint-operation=20us\njoint-rank=0s\njoint-bandwidth=16777216000\n";
  auto config = "--config-file=" + file;
  auto result = run(explain_command, {"all_reduce", "--ranks", "8", "--bytes", "1M", config});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "all_reduce, 8 ranks in one process, 1 MiB, "));
  CHECK(contains(result.out, "\nconstants: " + file + "\npicked: direct"));
  CHECK(contains(
    result.out,
    "direct                     1.02 ms  20 us for the operation, 0 ns in steps and messages, 1 ms copying\n"));
  CHECK(contains(run(explain_command, {"all_reduce", "--transport", "network", config}).out,
                 "latency 410 us, bandwidth 1.2 GB/s"));
  auto refused = run(explain_command, {"all_reduce", "--ranks", "2000", config});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "a process has at most 1024 devices, not 2000"));
  CHECK(run(explain_command, {"all_reduce", "--transport", "pigeon", config}).code == 2);
  CHECK(run(explain_command, {"all_reduce", "--transport", "process", "--latency", "1us", config}).code == 2);
}

TEST_CASE("draw: text, or a picture in a file") {
  temporary_directory dir;
  auto file = dir.path() / "ring.svg";
  CHECK(contains(run(draw_command, {"all_reduce", "--ranks", "4", "--algorithm", "ring"}).out, "\nround 5\n"));
  CHECK(run(draw_command, {"all_reduce", "--ranks", "4", "--svg", file.string()}).code == 0);
  CHECK(content_of(file).starts_with("<svg "));
  CHECK(contains(run(draw_command, {"barrier", "--root", "1"}).err, "--root: barrier has no root"));
  auto refused = run(draw_command, {"all_reduce", "--ranks", "17"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "ringmaster draw: --ranks: \"17\" is not an integer from 1 to 16\n");
}
