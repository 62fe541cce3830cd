#include "tools/options/schedule_file.hpp"

#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/processes/launched_program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tests/tools/options/bench_of.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

outcome simulated(const arguments& args) {
  return run_command(simulate_command(), args);
}

outcome drawn(const arguments& args) {
  return run_command(draw_command(), args);
}

/// The bench in a process of its own, since a file's schedules are registered for the rest of one.
outcome benched(arguments args) {
  args.insert(args.begin(), {RINGMASTER_PROGRAM, "bench"});
  args.insert(args.end(), {"--samples=1", "--iterations=1", "--no-memory-limit"});
  launch::launched_program run{std::move(args)};
  auto code = run.finish();
  return {code, run.output, run.error};
}

/// A directory with a file of schedules in it.
class schedules_on_disk {
public:
  /// As `ringmaster prove KIND --write` has them.
  explicit schedules_on_disk(arguments what) {
    what.insert(what.end(), {"--write", file()});
    auto written = run_command(prove_command(), what);
    REQUIRE(written.code == 0);
  }

  std::string file() const { return (dir_.path() / "mine.json").string(); }
  void replace(const std::string& words, const std::string& with) {
    auto changed = content_of(file());
    auto at = changed.find(words);
    REQUIRE(at != std::string::npos);
    std::ofstream{file()} << changed.replace(at, words.size(), with);
  }

private:
  temporary_directory dir_;
};

const arguments ring_of_three{"all_reduce", "--algorithm=ring", "--ranks=3", "--count=6"};

constexpr auto first_send = R"("from": ["input", 0, 2])";
constexpr auto wrong_send = R"("from": ["input", 2, 2])";
constexpr auto fault
  = "rank 1, round 0, step 1 (recv_reduce of output[0, 2) from rank 0): combines the input of rank 0 "
    "from element 2 on with the input of rank 1 from element 0 on";

} // namespace

TEST_CASE("schedule file: simulate runs it, like the algorithm that wrote it, and scaled") {
  schedules_on_disk ring{ring_of_three};
  auto own = simulated({"--schedule", ring.file()});
  CHECK(own.err == "");
  CHECK(own.code == 0);
  CHECK(contains(own.out, "all_reduce, file:mine.json, 3 ranks, 24 B: 4 rounds\n"));
  auto large = simulated({"--schedule", ring.file(), "--bytes", "24M", "--json"});
  auto by_ring = simulated({"all_reduce", "--algorithm=ring", "--ranks=3", "--bytes", "24M", "--json"});
  CHECK(large.code == 0);
  large.out.replace(large.out.find("file:mine.json"), 14, "ring");
  CHECK(large.out == by_ring.out);
  auto trace = ring.file() + ".trace";
  CHECK(simulated({"all_reduce", "--ranks=3", "--schedule", ring.file(), "--trace", trace}).code == 0);
  CHECK(std::filesystem::file_size(trace) > 0);
}

TEST_CASE("schedule file: simulate refuses options that contradict it, and names both") {
  schedules_on_disk ring{ring_of_three};
  auto refusal = [&](arguments args) {
    args.insert(args.end(), {"--schedule", ring.file()});
    auto result = simulated(args);
    CHECK(result.code == 2);
    CHECK(result.out == "");
    return result.err;
  };
  auto of_file = "--schedule " + ring.file();
  CHECK(refusal({"broadcast"}) == "ringmaster simulate: broadcast was asked for, but " + of_file + " has all_reduce\n");
  CHECK(refusal({"--ranks", "4"}) == "ringmaster simulate: --ranks 4: " + of_file + " says 3\n");
  CHECK(refusal({"--algorithm=ring"})
        == "ringmaster simulate: --algorithm ring: " + of_file + " says itself who does what\n");
  CHECK(refusal({"--chunk=4K"}) == "ringmaster simulate: --chunk 4096: " + of_file + " says itself who does what\n");
  CHECK(contains(refusal({"--root=0"}), "--root: all_reduce has no root"));
  CHECK(refusal({"--bytes=32"})
        == "ringmaster simulate: --bytes 32: " + of_file
             + " is for 6 elements of float32, 24 bytes, or a multiple of it\n");
  CHECK(contains(refusal({"--bytes=26"}), "--bytes 26: not a whole number of float32 elements of 4 bytes; 24 or 28"));
  CHECK(refusal({"--hosts=2"})
        == "ringmaster simulate: --hosts: 3 ranks cannot fill 2 hosts evenly; give the ranks of each host, such as "
           "2,1\n");
}

TEST_CASE("schedule file: simulate and bench do not run what the proof refuses; draw shows it and says so") {
  schedules_on_disk ring{ring_of_three};
  ring.replace(first_send, wrong_send);
  auto refusal = ring.file() + ": the proof does not hold: " + fault + '\n';
  auto result = simulated({"--schedule", ring.file()});
  CHECK(result.code == 1);
  CHECK(result.out == "");
  CHECK(result.err == "ringmaster simulate: " + refusal);
  auto bench = bench_of({"--schedule", ring.file()});
  REQUIRE(!bench);
  CHECK(render(bench.error()) + '\n' == refusal);
  auto picture = drawn({"--schedule", ring.file()});
  CHECK(picture.code == 1);
  CHECK(contains(picture.out, "\nround 3\n"));
  CHECK(picture.err == "ringmaster draw: " + refusal);
}

TEST_CASE("schedule file: draw shows schedules that do not fit together as far as they go, and their fault") {
  temporary_directory dir;
  const auto file = (dir.path() / "faulty.json").string();
  const auto svg = (dir.path() / "faulty.svg").string();
  // Rank 0 sends in round 0 what rank 1 takes; round 1 has the fault.
  const auto draw = [&](const std::string& round_one_of_0, const std::string& round_one_of_1) {
    std::ofstream{file} << R"({"kind": "all_gather", "ranks": 2, "count": 1, "schedules": [
      {"rounds": 3, "steps": [{"round": 0, "do": "send", "peer": 1, "from": ["input", 0, 1]}, )"
                        << round_one_of_0
                        << R"(, {"round": 2, "do": "copy", "from": ["input", 0, 1], "to": ["output", 0, 1]}]},
      {"rounds": 3, "steps": [{"round": 0, "do": "recv", "peer": 0, "to": ["output", 0, 1]}, )"
                        << round_one_of_1 << "]}]}";
    auto picture = drawn({"--schedule", file, "--svg", svg});
    CHECK(picture.code == 1);
    CHECK(contains(content_of(svg), "fault: "));
    auto text = drawn({"--schedule", file});
    CHECK(text.code == 1);
    CHECK(contains(text.out, "\nfrom a file, as far as it goes\n"));
    CHECK(contains(text.out, "[0] -> 1"));
    CHECK(contains(text.out, "\nround 2\n"));
    return text.err;
  };
  const auto send = [](const std::string& peer, int count) {
    return fmt::format(R"({{"round": 1, "do": "send", "peer": {}, "from": ["input", 0, {}]}})", peer, count);
  };
  const auto recv = [](const std::string& peer, int first, int count) {
    return fmt::format(R"({{"round": 1, "do": "recv", "peer": {}, "to": ["output", {}, {}]}})", peer, first, count);
  };
  CHECK(contains(draw(recv("1", 1, 1), recv("0", 1, 1)), "rank 1 sends nothing more that it could take"));
  CHECK(contains(draw(recv("1", 0, 2), send("0", 1)), "elements meet"));
  CHECK(contains(draw(recv("1", 1, 7), send("0", 1)), "rank 0, round 1"));
  CHECK(contains(draw(send("1", 1) + ", " + recv("1", 1, 1), send("0", 1)), "takes nothing more from it"));
  // Each waits for a message that the other sends a round later.
  const auto late = [](const std::string& peer) {
    return fmt::format(R"(, {{"round": 2, "do": "send", "peer": {}, "from": ["input", 0, 1]}})", peer);
  };
  CHECK(contains(draw(recv("1", 1, 1) + late("1"), recv("0", 0, 1) + late("0")), "deadlock: "));
}

TEST_CASE("schedule file: draw shows it, and refuses what is too large") {
  schedules_on_disk ring{ring_of_three};
  auto picture = drawn({"--schedule", ring.file()});
  CHECK(picture.code == 0);
  CHECK(picture.err == "");
  CHECK(contains(picture.out, "all_reduce: file:mine.json, 3 ranks\n"));
  auto by_ring = drawn({"all_reduce", "--algorithm", "ring", "--ranks", "3", "--count", "6"}).out;
  CHECK(picture.out.substr(picture.out.find("\nround 0")) == by_ring.substr(by_ring.find("\nround 0")));
  CHECK(drawn({"--schedule", ring.file(), "--count", "9"}).err
        == "ringmaster draw: --count 9: --schedule " + ring.file() + " says 6\n");
  ring.replace(first_send, R"("from": ["input", 0, 20])");
  auto misfit = drawn({"--schedule", ring.file()});
  CHECK(misfit.code == 1);
  CHECK(contains(misfit.err, "rank 0, round 0, step 0 (send of input[0, 20) to rank 1): "));
  schedules_on_disk large{{"all_reduce", "--algorithm", "ring", "--ranks", "3", "--count", "1000000000000"}};
  CHECK(contains(drawn({"--schedule", large.file()}).err, "a picture has at most 4096 elements a buffer"));
  schedules_on_disk wide{{"all_reduce", "--algorithm", "ring", "--ranks", "17", "--count", "17"}};
  CHECK(contains(drawn({"--schedule", wide.file()}).err, "a picture has at most 16 ranks"));
}

TEST_CASE("schedule file: bench has the file's sizes, or multiples of them") {
  schedules_on_disk scatter{{"scatter", "--algorithm", "tree", "--ranks", "3", "--count", "2", "--root", "1"}};
  auto own = bench_of({"--schedule", scatter.file()});
  REQUIRE(own);
  CHECK(own->kind == proto::SCATTER);
  CHECK(own->devices == 3);
  CHECK(own->root == 1);
  CHECK(own->min_bytes == 24);
  CHECK(own->max_bytes == 24);
  auto more = bench_of({"--schedule", scatter.file(), "--max-bytes", "24K", "--datatype=float64"});
  REQUIRE(more);
  CHECK(more->min_bytes == 48);
  CHECK(more->max_bytes == 24576);
  auto refusal = [&](arguments args) {
    args.insert(args.end(), {"--schedule", scatter.file()});
    return render(bench_of(args).error());
  };
  auto of_file = "--schedule " + scatter.file();
  CHECK(refusal({"--min-bytes", "32"})
        == "--min-bytes 32: " + of_file + " is for 6 elements of float32, 24 bytes, or a multiple of it");
  CHECK(refusal({"--max-bytes", "8"})
        == "--max-bytes 8: " + of_file + " is for 6 elements of float32, 24 bytes, or a multiple of it");
  CHECK(refusal({"--devices=4"}) == "--devices 4: " + of_file + " says 3");
  CHECK(refusal({"--root=2"}) == "--root 2: " + of_file + " says 1");
  CHECK(refusal({"--peer=2"}) == "--peer: scatter has no peer; send_recv has one");
  CHECK(refusal({"--algorithm=all"}) == "--algorithm all: " + of_file + " says itself who does what");
}

TEST_CASE("schedule file: bench runs it on real memory, and its results are right") {
  for (const auto& what : {ring_of_three, arguments{"all_gather", "--algorithm=bruck", "--ranks=3", "--count=2"},
                           arguments{"send_recv", "--algorithm=direct", "--ranks=3", "--count=6", "--root=2"}}) {
    schedules_on_disk mine{what};
    auto result = benched({"--schedule", mine.file(), "--max-bytes=9600", "--factor=400"});
    CAPTURE(result.out);
    CHECK(result.err == "");
    CHECK(result.code == 0);
    CHECK(contains(result.out, "# " + what[0] + " on 3 devices"));
    CHECK(contains(result.out, "          24 "));
    CHECK(contains(result.out, "        9600 "));
    CHECK(contains(result.out, " file:mine.json "));
    CHECK(contains(result.out, "# every result was right\n"));
  }
}

TEST_CASE("schedule file: an error names the file, and the step or the line and column") {
  schedules_on_disk ring{ring_of_three};
  ring.replace("\"peer\"", "\"pear\"");
  auto refused = simulated({"--schedule", ring.file()});
  CHECK(refused.code == 1);
  CHECK(refused.err
        == "ringmaster simulate: " + ring.file()
             + ": rank 0, step 0: unknown key \"pear\"; allowed are: round, do, peer, from, then\n");
  ring.replace("\"pear\": 1", "\"peer\" 1");
  CHECK(
    contains(drawn({"--schedule", ring.file()}).err,
             ": line 3, column 39: this is not JSON: syntax error while parsing object separator - unexpected number "
             "literal; expected ':'\n"));
  CHECK(simulated({"--schedule", "/nowhere/x"}).code == 1);
  CHECK(simulated({"--schedule", "/nowhere/x"}).err
        == "ringmaster simulate: cannot read '/nowhere/x': No such file or directory\n");
}
