#include "tools/options/commands.hpp"

#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

const std::vector<std::string> two_layers{"--ranks=8", "--tensor=4",      "--layer",       "hidden:768x256:columns",
                                          "--layer",   "out:256x10:rows", "--samples=1000"};

outcome laid_out(std::vector<std::string> args, const std::vector<std::string>& more = {}) {
  args.insert(args.end(), more.begin(), more.end());
  return run_command(layout_command(), args);
}

void check_layout_usage(const std::vector<std::string>& args, std::string_view sentence) {
  auto end = laid_out(args);
  CHECK(end.code == 2);
  CHECK(end.out.empty());
  CHECK_MESSAGE(contains(end.err, sentence), end.err);
}

} // namespace

TEST_CASE("layout command: a grid, the groups, the layers, and a row for each rank") {
  auto end = laid_out(two_layers);
  CHECK(end.code == 0);
  for (auto* line :
       {"8 ranks: 4 by tensor x 2 by data; rank = data index x 4 + tensor index\n",
        "  data 1       rank 4     rank 5     rank 6     rank 7   samples 500-999\n",
        "which share each layer:   0-3 | 4-7\n", "which have the same part:   0 4 | 1 5 | 2 6 | 3 7\n",
        "hidden         768x256  columns             768x64\n", "out             256x10  rows                 64x10\n",
        "       6        2        1  samples 500-999; hidden 768x64, columns 128-191; out 64x10, rows 128-191\n"})
    CHECK_MESSAGE(contains(end.out, line), line);
}

TEST_CASE("layout command: --layer takes several layers") {
  CHECK(
    laid_out({"--ranks=8", "--tensor=4", "--samples=1000", "--layer", "hidden:768x256:columns", "out:256x10:rows"}).out
    == laid_out(two_layers).out);
}

TEST_CASE("layout command: the text of many ranks is shortened, and JSON has all") {
  auto text = laid_out({"--ranks=512", "--tensor=2", "--layer=a:4x4:rows"});
  CHECK(contains(text.out, "and 448 ranks more; --json has all\n"));
  CHECK(contains(text.out, " | ... 256 in all\n"));
  CHECK(contains(text.out, "0 2 4 6 8 10 12 14 ... 510 | 1 3"));
  auto end = laid_out(two_layers, {"--json"});
  auto json = parse_json(end.out);
  REQUIRE(json);
  const json_field all{"the object", *json};
  auto places = all.at("places").list();
  REQUIRE(places->size() == 8);
  auto& sixth = places->at(6);
  CHECK(*sixth.at("tensor_index").number(9) == 2);
  CHECK(*sixth.at("data_index").number(9) == 1);
  CHECK(*sixth.at("samples").list()->at(0).number(999) == 500);
  auto hidden = sixth.at("layers").list()->at(0);
  CHECK(*hidden.at("shape").list()->at(1).number(999) == 64);
  CHECK(*hidden.at("columns").list()->at(0).number(999) == 128);
  CHECK(*all.at("data_groups").list()->at(3).list()->at(1).number(9) == 7);
  CHECK(*all.at("layers").list()->at(1).at("cut").text() == "rows");
}

TEST_CASE("layout command: --svg writes a picture") {
  temporary_directory directory;
  const auto file = (directory.path() / "layout.svg").string();
  auto end = laid_out(two_layers, {"--svg", file});
  CHECK(end.code == 0);
  CHECK(end.out == "Wrote " + file + ".\n");
  CHECK(contains(content_of(file), ">rank 7<"));
}

TEST_CASE("layout command: impossible layouts are refused with a sentence") {
  check_layout_usage({"--tensor=4"}, "it takes --ranks N");
  check_layout_usage({"--ranks=8", "--tensor=3"}, "8 ranks cannot share layers 3 by 3");
  check_layout_usage({"--ranks=8", "--tensor=4", "--layer=a:768x255:columns"}, "255 is no multiple of 4");
  check_layout_usage({"--ranks=8", "--layer=a"}, "\"a\" is no layer");
  check_layout_usage({"--ranks=8", "--json", "--svg=x.svg"}, "one of --json and --svg FILE");
  check_layout_usage({"--ranks=32", "--svg=x.svg"}, "at most 16 x 16 ranks");
}
