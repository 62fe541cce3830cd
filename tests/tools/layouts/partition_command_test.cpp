#include "tools/options/commands.hpp"

#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

void check_partition_refused(const std::vector<std::string>& args, std::string_view sentence) {
  auto end = run_command(partition_command(), args);
  CHECK(end.code == 2);
  CHECK(end.out.empty());
  CHECK_MESSAGE(contains(end.err, sentence), end.err);
}

} // namespace

TEST_CASE("partition command: a row for each rank, and what is left over") {
  auto end = run_command(partition_command(), {"--samples", "10", "--parts", "4", "--seed", "1234"});
  CHECK(end.code == 0);
  CHECK(end.out
        == "10 samples, shuffled as by random.Random(1234) of CPython\n"
           "    rank      samples  which\n"
           "       0            2  2 8\n"
           "       1            2  3 5\n"
           "       2            2  6 4\n"
           "       3            2  9 0\n"
           "left over: 2 samples: 1 7\n");
}

TEST_CASE("partition command: the text of long parts and many ranks is shortened, and JSON has all") {
  auto text = run_command(partition_command(), {"--samples=50000", "--fractions", "0.5,0.25"});
  CHECK(contains(text.out, "25,000  4564 15975 32972 20607 32086 26368 5375 37584 23693 8375 ...\n"));
  CHECK(contains(text.out, "left over: 12500 samples: "));
  CHECK(contains(run_command(partition_command(), {"--samples=50000", "--parts=100"}).out,
                 "\nand 36 ranks more; --json"));

  auto end = run_command(partition_command(), {"--samples=50000", "--fractions", "0.5,0.25", "--json"});
  auto json = parse_json(end.out);
  REQUIRE(json);
  const json_field all{"the object", *json};
  CHECK(*all.at("seed").number(9999) == 1234);
  auto ranks = all.at("ranks").list();
  REQUIRE(ranks->size() == 2);
  CHECK(ranks->at(1).at("samples").list()->size() == 12500);
  CHECK(*ranks->at(0).at("samples").list()->at(2).number(50000) == 32972);
  CHECK(all.at("left_over").list()->size() == 12500);
}

TEST_CASE("partition command: no samples, fewer than parts, and negative and huge seeds are as in CPython") {
  auto end = run_command(partition_command(), {"--samples", "5", "--parts", "6", "--seed", "0"});
  CHECK(end.code == 0);
  CHECK(contains(end.out, "       5            0  \nleft over: 5 samples: 2 1 0 4 3\n"));
  CHECK(contains(run_command(partition_command(), {"--samples=0", "--parts=2"}).out, "\nnothing is left over\n"));
  auto negative = run_command(partition_command(), {"--samples", "10", "--parts", "1", "--seed", "-1"});
  CHECK(contains(negative.out, "10 samples, shuffled as by random.Random(-1) of CPython\n"));
  CHECK(contains(negative.out, "  6 8 9 7 5 3 0 4 1 2\n"));
  const std::string huge = "340282366920938463463374607431768211456";
  auto json = run_command(partition_command(), {"--samples=3", "--parts=1", "--seed=" + huge, "--json"});
  CHECK(contains(json.out, "\"seed\":" + huge + ","));
  CHECK(contains(run_command(partition_command(), {"--samples=0", "--parts=2", "--json"}).out, "\"left_over\":[]"));
}

TEST_CASE("partition command: impossible partitions are refused with a sentence") {
  check_partition_refused({"--parts=2"}, "it takes --samples N");
  check_partition_refused({"--samples=8"}, "one of --parts W and --fractions F,...");
  check_partition_refused({"--samples=8", "--parts=2", "--fractions=0.5"}, "one of --parts W and --fractions F,...");
  check_partition_refused({"--samples=8", "--parts=0"}, "--parts");
  check_partition_refused({"--samples=8", "--parts=2", "--seed=1.5"}, "\"1.5\" is no whole number");
  check_partition_refused({"--samples=8", "--fractions=0.9,0.2"}, "more than 1 together");
  check_partition_refused({"--samples=8", "--fractions=x"}, "\"x\" is no fraction");
}
