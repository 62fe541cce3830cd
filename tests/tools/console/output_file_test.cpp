#include "tools/console/output_file.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ringmaster;

TEST_CASE("output file: to try one leaves what is there, and nothing where nothing was") {
  test::temporary_directory dir;
  const auto there = (dir.path() / "there").string(), other = (dir.path() / "other").string();
  std::ofstream{there} << "old";
  CHECK(!try_output_file(there, "the picture"));
  std::ostringstream text;
  text << std::ifstream{there}.rdbuf();
  CHECK(text.str() == "old");
  CHECK(!try_output_file(other, "the picture"));
  CHECK(!std::filesystem::exists(other));
  CHECK(!try_output_file("/dev/null", "the picture"));
  CHECK(render(try_output_file(there + "/below", "the picture"))
        == "cannot write the picture '" + there + "/below': Not a directory");
}
