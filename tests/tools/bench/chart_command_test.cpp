#include "tools/options/commands.hpp"

#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::string row(const std::string& algorithm, uint64_t size, const std::string& time, int devices = 8) {
  std::ostringstream text;
  text << R"({"kind":"all_reduce","algorithm":")" << algorithm << R"(","devices":)" << devices << R"(,"size":)" << size
       << R"(,"time":)" << time << R"(,"busbw":2.5})" << '\n';
  return text.str();
}

/// A directory with the file that is to be drawn.
struct fixture {
  temporary_directory directory;
  std::string input = (directory.path() / "rows.json").string();
  std::string svg = (directory.path() / "rows.svg").string();

  outcome draw(const std::string& rows, const std::vector<std::string>& options = {}) {
    std::ofstream{input} << rows;
    std::vector<std::string> args{input, "--svg", svg};
    args.insert(args.end(), options.begin(), options.end());
    return run_command(chart_command(), args);
  }

  std::string picture() const { return content_of(svg); }
};

} // namespace

TEST_CASE_FIXTURE(fixture, "chart: one line an algorithm, named at its end, with units at the axes") {
  auto result = draw(row("ring", 0, "9") + row("ring", 1024, "10") + row("ring", 1 << 20, "1000")
                     + row("naive", 1 << 20, "100"));
  CHECK(result.code == 0);
  for (auto part : {">ring<", ">naive<", ">all_reduce on 8 devices<", ">10 us<", ">1 ms<", ">1 KiB<", ">1 MiB<"})
    CHECK_MESSAGE(contains(picture(), part), part);
}

TEST_CASE_FIXTURE(fixture, "chart: of several runs it draws the median") {
  REQUIRE(draw(row("ring", 1024, "10") + row("ring", 2048, "200")).code == 0);
  auto once = picture();
  std::string rows;
  for (auto time : {"90", "10", "1.5"})
    rows += row("ring", 1024, time) + row("ring", 2048, "200");
  REQUIRE(draw(rows).code == 0);
  auto remark = once.find("one run");
  REQUIRE(remark != std::string::npos);
  CHECK(picture() == once.replace(remark, std::string{"one run"}.size(), "medians of 3 runs"));
}

TEST_CASE_FIXTURE(fixture, "chart: bandwidth instead of time") {
  CHECK(draw(row("ring", 1024, "10"), {"--busbw"}).code == 0);
  CHECK(contains(picture(), ">1 GB/s<"));
  CHECK(contains(picture(), ">bus bandwidth<"));
}

TEST_CASE_FIXTURE(fixture, "chart: rows that cannot be drawn are refused, with file and line") {
  auto mixed = draw(row("ring", 1024, "10") + row("ring", 1024, "10", 4));
  CHECK(mixed.code == 1);
  CHECK(contains(mixed.err, ", line 2: must be"));
  CHECK(contains(mixed.err, input));
  CHECK(contains(mixed.err, "all_reduce on 8 devices"));
  auto negative = draw(row("ring", 1024, "-1"));
  CHECK(negative.code == 1);
  CHECK(contains(negative.err, "a number above 0"));
  CHECK(contains(draw("not JSON\n").err, "line 1: line 1, column 2: this is not JSON"));
  CHECK(contains(draw("").err, "no row"));
  CHECK(draw("", {"--frobnicate"}).code == 2);
}
