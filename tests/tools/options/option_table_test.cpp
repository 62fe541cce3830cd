#include "tools/options/option_table.hpp"

#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/tools/options/bench_of.hpp"
#include "tools/bench/bench_options.hpp"
#include "tools/demo/demo.hpp"
#include "tools/journal/log_options.hpp"
#include "tools/options/collective_options.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// What a command's parser says to the arguments; empty: it takes them.
std::string bench_refusal(const arguments& args) {
  auto read = bench_of(args);
  return read ? "" : render(read.error());
}

std::string read_into(demo_options& target, const arguments& args) {
  option_table table{"ringmaster demo"};
  target.add_to(table);
  auto problem = table.read(args);
  if (!problem)
    problem = target.check();
  return problem ? render(problem) : "";
}

std::string demo_refusal(const arguments& args) {
  demo_options target;
  return read_into(target, args);
}

} // namespace

TEST_CASE("option table: values stand behind a blank or an equals sign, and fit their targets") {
  uint32_t count = 0;
  std::optional<uint64_t> size, absent;
  bool fast = false;
  std::string name, colour;
  option_table table{"ringmaster paint"};
  table.number("--count", count, 1, 9);
  table.bytes("--size", size);
  table.bytes("--absent", absent);
  table.flag("--fast", fast);
  table.text("--name", name);
  table.word("--colour", colour, {"red", "green"});
  CHECK(!table.read(arguments{"--count", "3", "--size=64K", "--fast", "--name=a=b", "--colour", "green"}));
  CHECK(count == 3);
  CHECK(size == 65536);
  CHECK(!absent);
  CHECK(fast);
  CHECK(name == "a=b");
  CHECK(colour == "green");
  CHECK(!table.help());
  auto refused = [&](const arguments& args) { return render(table.read(args)); };
  CHECK(refused({"--count", "10"}) == "--count: \"10\" is not an integer from 1 to 9");
  CHECK(refused({"--colour", "blue"}) == "--colour: \"blue\" is none of red, green");
  CHECK(refused({"--name="}) == "--name: it is empty");
  CHECK(refused({"--fast=no"}) == "--fast takes no value, and has \"no\"");
  CHECK(refused({"--size"}) == "--size needs a value; see ringmaster paint --help");
  CHECK(refused({"--colours=red"})
        == "there is no option --colours; did you mean --colour? Or see ringmaster paint --help");
  CHECK(refused({"--weight", "3"}) == "there is no option --weight; see ringmaster paint --help");
  CHECK(refused({"wall"}) == "\"wall\" is no option; see ringmaster paint --help");
  CHECK(!table.read(arguments{"-h", "--weight"}));
  CHECK(table.help());
}

TEST_CASE("nearest word: two characters differ at most, or there is a part more or less; it is the only one") {
  std::vector<std::string> words{"--bytes", "--ranks", "--root", "--chunk"};
  CHECK(nearest_word("--byte", words) == "--bytes");
  CHECK(nearest_word("--bites", words) == "--bytes");
  CHECK(nearest_word("foo", {"log", "node"}) == ""); // too far apart
  CHECK(nearest_word("lgo", {"log", "node"}) == "log");
  CHECK(nearest_word("nodes", {"log", "node"}) == "node");
  CHECK(nearest_word("--rnaks", words) == "--ranks");
  CHECK(nearest_word("--roots", words) == "--root");
  CHECK(nearest_word("--seconds", words) == "");
  CHECK(nearest_word("--ranks-of-all", words) == "--ranks");
  CHECK(nearest_word("--micro", {"--macro-batch", "--micro-batch"}) == "--micro-batch");
  CHECK(nearest_word("--micro", {"--micro-batch", "--micro-ranks"}) == "");
  CHECK(nearest_word("--by", {"--by-all"}) == "");
  CHECK(nearest_word("--a", {"--b", "--c"}) == "");
}

TEST_CASE("quantities: sizes are spelled the same in every command") {
  auto bench = bench_of({"--min-bytes", "64K", "--max-bytes", "64KiB", "--chunk=8KB"});
  REQUIRE(bench);
  CHECK(bench->min_bytes == 65536);
  CHECK(bench->max_bytes == 65536);
  CHECK(bench->chunk_count == 2000);
  CHECK(bench_of({"--min-bytes=64KB"})->min_bytes == 64000);
  for (auto text : {"1.5K", "1.5M", "64kB ", "K", "-1", "64Kbit", "64Q", "5000P"})
    CHECK(
      render(parse_bytes(text).error())
      == "\"" + std::string{text}
           + "\" is not a whole number of bytes such as 4096, 64K or 64KiB (powers of 1024) or 64KB (powers of 1000)");
  for (auto [text, bytes] : {std::pair{"64K", 65536u},
                             {"64KiB", 65536u},
                             {"64Ki", 65536u},
                             {"64KB", 64000u},
                             {"64k", 65536u},
                             {"64kB", 64000u},
                             {"64kb", 64000u},
                             {"2 M", 2u << 20},
                             {"7", 7u},
                             {"7B", 7u}}) {
    CAPTURE(text);
    CHECK(*parse_bytes(text) == bytes);
  }
  CHECK(size_text(65536) == "64K");
  CHECK(size_text(64000) == "64000");
  CHECK(size_text(0) == "0");
  CHECK(*parse_bytes(size_text(uint64_t{3} << 40)) == uint64_t{3} << 40);
  CHECK(render(parse_bytes("2P", uint64_t{1} << 50).error()) == "\"2P\" is not at most 1 PiB");
  CHECK(*parse_whole("0x1f", 0) == 31);
  CHECK(render(parse_whole("18446744073709551616", 1).error())
        == "\"18446744073709551616\" is not an integer from 1 to 18446744073709551615");
  CHECK(render(parse_whole("0x", 1).error()) == "\"0x\" is not an integer from 1, such as 3 or 0x3");
  CHECK(!parse_whole("-3", 0));
  CHECK(!parse_whole("3 ", 0));
  CHECK(*parse_whole("18446744073709551615", 0) == UINT64_MAX);
  CHECK(!parse_whole("18446744073709551616", 0));
}

TEST_CASE("whole elements: what is no multiple is refused, with what would be right") {
  CHECK(*whole_elements("--bytes", 12, proto::FLOAT32) == 3);
  CHECK(render(whole_elements("--bytes", 10, proto::FLOAT32).error())
        == "--bytes 10: not a whole number of float32 elements of 4 bytes; 8 or 12 would be");
  CHECK(*whole_elements("--bytes", 7, proto::INT8) == 7);
}

TEST_CASE("bench options: what has no meaning is refused with a sentence") {
  CHECK(bench_refusal({"broadcast", "--root", "3", "--devices=4"}) == "");
  CHECK(bench_refusal({"--min-bytes", "10"})
        == "--min-bytes 10: not a whole number of float32 elements of 4 bytes; 8 or 12 would be");
  CHECK(bench_refusal({"--max-bytes=1KB", "--datatype", "float64", "--min-bytes=12"})
        == "--min-bytes 12: not a whole number of float64 elements of 8 bytes; 8 or 16 would be");
  CHECK(bench_refusal({"--max-bytes", "4097"})
        == "--max-bytes 4097: not a whole number of float32 elements of 4 bytes; 4096 or 4100 would be");
  CHECK(bench_refusal({"--chunk", "6"})
        == "--chunk 6: not a whole number of float32 elements of 4 bytes; 4 or 8 would be");
  CHECK(bench_refusal({"--iterations=1000001"}).find("1000000") != std::string::npos); // more are not enqueued at once
  CHECK(bench_refusal({"--min-bytes", "64", "--max-bytes", "32"}) == "--min-bytes 64 is more than --max-bytes 32");
  CHECK(bench_refusal({"--root", "1"})
        == "--root: all_reduce has no root; reduce, broadcast, gather, scatter, send_recv have one");
  CHECK(bench_refusal({"broadcast", "--root", "8"}).find("8") != std::string::npos);
  CHECK(bench_refusal({"broadcast", "--peer", "1"}) == "--peer: broadcast has no peer; send_recv has one");
  CHECK(bench_refusal({"broadcast", "--op", "max"}) == "--op: broadcast does not reduce");
  CHECK(bench_refusal({"all_gather", "--deterministic"}) == "--deterministic: all_gather does not reduce");
  CHECK(bench_refusal({"all_gather", "--min-bytes", "8"})
        == "--min-bytes 8: less than an element of float32 for each of 8 ranks; 32 would be one");
  CHECK(bench_refusal({"--min-bytes", "0"}) == "--min-bytes 0: less than an element of float32, which has 4 bytes");
  CHECK(bench_refusal({"--min-bytes", "3"})
        == "--min-bytes 3: not a whole number of float32 elements of 4 bytes; 4 would be");
  for (auto* option : {"--min-bytes=8", "--max-bytes=8", "--in-place"})
    CHECK(bench_refusal({"barrier", option}).ends_with(": barrier moves no data"));
  CHECK(bench_refusal({"barrier"}) == "");
  CHECK(bench_refusal({"--chunk=64K"}) == "");
  CHECK(bench_refusal({"--chunk=64K", "--algorithm=all"}) == "");
  CHECK(bench_refusal({"--chunk=64K", "--algorithm=direct"})
        == "--chunk: direct does not cut its data into pieces; ring_pipelined, double_tree, chain of all_reduce do");
  CHECK(bench_refusal({"all_gather", "--chunk=64K"})
        == "--chunk: no algorithm of all_gather cuts its data into pieces");
  CHECK(bench_refusal({"--iterations=0"}) == "--iterations: \"0\" is not an integer from 1 to 1000000");
  CHECK(bench_refusal({"--op=nix"}) == "--op: \"nix\" is none of sum, prod, min, max, avg");
  CHECK(bench_of({"all_gather"})->min_bytes == 64); // 8 is less, and the next one is 8 times as much
  CHECK(bench_of({"-b", "1K", "-e2M", "-f", "2", "-n=7", "-w", "0"})->max_bytes == 2 << 20);
  CHECK(bench_refusal({"--devices", "1"}) == "--devices: \"1\" is not an integer from 2 to 1024");
  CHECK(bench_refusal({"--max-bites", "8"})
        == "there is no option --max-bites; did you mean --max-bytes? Or see ringmaster bench --help");
  CHECK(bench_refusal({"all_reduce", "reduce"})
        == "one collective at a time: \"all_reduce\" and \"reduce\" were given");
}

TEST_CASE("option table: one positional argument too many is refused") {
  std::vector<std::string> taken;
  auto refusal_of = [&](const std::string& word, const std::vector<std::string>& args) {
    option_table table{"house paint"};
    table.positional(word, [&](const std::string& text) { return taken.push_back(text), caf::error{}; });
    auto problem = table.read(args);
    return problem ? render(problem) : "";
  };
  CHECK(refusal_of("WALL", {"north"}) == "");
  CHECK(refusal_of("WALL", {"north", "south"})
        == "\"south\" is one too many: house paint WALL, and north is there already");
  CHECK(refusal_of("WALL COLOUR", {"north", "red"}) == "");
  CHECK(refusal_of("WALL COLOUR", {"north", "red", "green"})
        == "\"green\" is one too many: house paint WALL COLOUR, and north red is there already");
}

TEST_CASE("bench and demo: device.count on the command line is as --devices, and must not differ from it") {
  bench_arguments read, both;
  option_table table{"ringmaster bench"}, other{"ringmaster bench"};
  read.add_to(table);
  CHECK(!read.take_device_count(4));
  CHECK(read.options()->devices == 4);
  CHECK(read.options()->devices_given);
  CHECK(render(read.take_device_count(1)) == "--device.count=1: the bench takes 2 to 1024 devices");
  both.add_to(other);
  CHECK(!other.read(arguments{"--devices=8"}));
  CHECK(!both.take_device_count(8));
  CHECK(render(both.take_device_count(4)) == "--device.count=4 and --devices 8: give one of them");
  demo_options story;
  CHECK(!story.take_device_count(3));
  CHECK(read_into(story, {}) == "");
  CHECK(story.devices == 3);
  auto refused = run_command(bench_command(), {"--device.count=4", "--devices=8"});
  CHECK(refused.code == 2);
  CHECK(refused.err == "ringmaster bench: --device.count=4 and --devices 8: give one of them\n");
}

TEST_CASE("bench and demo: memory that the command line gives is what devices have, or is refused") {
  auto small = run_command(bench_command(), {"--device.memory-bytes=4K", "-b", "1M", "-e", "1M"});
  CHECK(small.code == 2);
  CHECK(small.err.find("ringmaster bench: --device.memory-bytes=4096: 1 MiB wants ") == 0);
  CHECK(small.err.find(" of memory on each device, and these have 4 KiB: a larger device.memory-bytes")
        != std::string::npos);
  auto story = run_command(demo_command(), {"--device.memory-bytes=64KiB", "--elements=5000"});
  CHECK(story.code == 2);
  CHECK(story.err == "ringmaster demo: --device.memory-bytes=65536: --elements 5000 want 80000 bytes on each device\n");
  auto cut = run_command(bench_command(),
                         {"--devices=2", "--device.memory-bytes=1M", "--algorithm=ring", "-w", "0", "-n", "1"});
  CHECK_MESSAGE(cut.code == 0, cut.err);
  CHECK_MESSAGE(cut.out.find("the devices' memory has no space for more") != std::string::npos, cut.out);
}

TEST_CASE("configured call: an option that stands for a key is named as it was typed") {
  CHECK(run_command(node_command(), {"--devices", "1.5"}).err
        == "ringmaster node: --devices: \"1.5\" is not an integer from 0 to 1024\n");
  CHECK(run_command(coordinator_command(), {"--port=x"}).err
        == "ringmaster coordinator: --port: \"x\" is not an integer from 0 to 65535\n");
  CHECK(
    run_command(info_command(), {"--join", "127.0.0.1"}).err
    == "ringmaster info: --join: \"127.0.0.1\" is not \"host:port\" with a port from 1 to 65535, several of these with "
       "commas between them\n");
  CHECK(run_command(node_command(), {"--device.count=1.5"}).err.find("device.count is 1.5; it must be")
        != std::string::npos);
}

TEST_CASE("demo options: read, and refused with a sentence") {
  demo_options story, usual, mild;
  CHECK(read_into(story, {"--devices=4", "--kill", "2", "--kill-rank=3", "--algorithm", "naive", "--op", "max"}) == "");
  CHECK(story.devices == 4);
  CHECK(story.devices_given);
  CHECK(story.kill_step == 2);
  CHECK(story.kill_rank == 3);
  CHECK(story.op == gpu_sim::MAX);
  CHECK(read_into(usual, {}) == "");
  CHECK(!usual.devices_given);
  CHECK(read_into(mild, {"--kill=none"}) == "");
  CHECK(!mild.kill);
  CHECK(demo_refusal({"--kill", "soon"})
        == "--kill: \"soon\" is neither random, nor none, nor a number of rounds from 0 to 1000");
  CHECK(demo_refusal({"--kill", "15"}) == "--kill is 15, but this all-reduce has 14 rounds");
  CHECK(demo_refusal({"--kill-rank", "8"}) == "--kill-rank is 8, but 8 devices have ranks 0 to 7");
  CHECK(demo_refusal({"--kill=none", "--kill-rank", "1"}) == "--kill-rank: with --kill none no device fails");
  CHECK(demo_refusal({"--algorithm", "tree"}) == "--algorithm: \"tree\" is none of ring, naive");
  CHECK(demo_refusal({"--op", "premul_sum"}) == "--op: \"premul_sum\" needs factors, for which there is no option");
  CHECK(demo_refusal({"--element", "9"})
        == "there is no option --element; did you mean --elements? Or see ringmaster demo --help");
}

TEST_CASE("help: commands show ten options at most, and how to see all") {
  for (const std::string command :
       {"demo", "train", "bench", "prove", "simulate", "plan", "explain", "tune", "log", "status", "info", "node"}) {
    launch::launched_program help{{RINGMASTER_PROGRAM, command, "--help"}};
    CHECK(help.finish() == 0);
    CHECK_MESSAGE(help.output.ends_with("ringmaster " + command + " --help-all shows all options.\n"), help.output);
    size_t options = 0;
    for (size_t at = 0; (at = help.output.find("\n  -", at)) != std::string::npos; ++at)
      ++options;
    CHECK_MESSAGE(options <= option_table::common_max + 1, command); // with --help
  }
}

TEST_CASE("info: a number of devices that is none is refused before anybody is waited for") {
  launch::launched_program info{{RINGMASTER_PROGRAM, "info", "--join", "127.0.0.1:1", "--devices", "many"}};
  CHECK(info.finish() == 2);
  CHECK(info.error == "ringmaster info: --devices: \"many\" is not an integer from 0, such as 2 or 0x2\n");
}

TEST_CASE("info: what the environment says of the cluster is named where it is wrong") {
  launch::launched_program info{{"env", "RINGMASTER_COORDINATOR=here", RINGMASTER_PROGRAM, "info"}};
  CHECK(info.finish() == 2);
  CHECK(info.error
        == "ringmaster info: RINGMASTER_COORDINATOR in the environment: \"here\" is no endpoint: that is \"host:port\" "
           "with a port from 1 to 65535\n");
}

TEST_CASE("info, destroy, node: a host that there is not is no fault of the command line") {
  for (auto& words : std::vector<arguments>{{"info"}, {"destroy", "all"}, {"node", "--device.memory-bytes=64K"}}) {
    auto line = words;
    line.insert(line.begin(), RINGMASTER_PROGRAM);
    line.insert(line.end(), {"--join", "no-such-host.invalid:7077"});
    launch::launched_program program{line};
    CHECK(program.finish() == 1);
    CHECK(program.error.find("no-such-host.invalid") != std::string::npos);
  }
}
