// What the bench says of real operations on devices of its own.
#include "tests/support/processes/launched_program.hpp"

#include <doctest/doctest.h>

using namespace ringmaster::launch;

namespace {

void check_all_right(std::vector<std::string> told) {
  std::vector<std::string> words{RINGMASTER_PROGRAM, "bench"};
  words.insert(words.end(), told.begin(), told.end());
  for (auto word :
       {"--devices=3", "--algorithm=all", "--samples=1", "--warmup=0", "--iterations=2", "--no-memory-limit"})
    words.emplace_back(word);
  launched_program run{words};
  CHECK(run.finish() == 0);
  CAPTURE(run.output);
  CAPTURE(run.error);
  CHECK(run.output.find("# every result was right") != std::string::npos);
}

} // namespace

TEST_CASE("bench program: blocks of several sizes come out right by every algorithm, in place and not") {
  for (std::string kind : {"reduce_scatter", "all_to_all", "all_gather", "gather", "scatter"})
    for (std::string place : {"--in-place", "--single"}) {
      CAPTURE(kind);
      CAPTURE(place);
      check_all_right({kind, "--uneven", place, "--min-bytes=96K", "--max-bytes=96K"});
    }
}

TEST_CASE("bench program: averages of full-range integers and small floats come out right by every algorithm") {
  for (std::string type : {"int8", "uint64", "float16"}) {
    CAPTURE(type);
    check_all_right({"all_reduce", "--op=avg", "--datatype", type, "--min-bytes=4K", "--max-bytes=4K"});
  }
}
