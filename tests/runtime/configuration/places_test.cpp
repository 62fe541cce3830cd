#include "runtime/configuration/places.hpp"

#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace ringmaster;
using namespace ringmaster::test;

namespace fs = std::filesystem;

namespace {

void touch(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream{file} << "\n";
}

} // namespace

TEST_CASE("places: a program in a source tree has the tree's configuration and data, however deep it was built") {
  temporary_directory dir;
  const auto configuration = dir.path() / "tree/config/caf-application.conf", data = dir.path() / "tree/bench/data/x";
  touch(configuration);
  touch(data);
  for (auto place : {"tree/build", "tree/build/release", "tree/build/release/examples"}) {
    CAPTURE(place);
    CHECK(find_configuration(dir.path() / place) == configuration);
    CHECK(find_data("x", dir.path() / place) == data);
  }
}

TEST_CASE("places: an installed program uses the installed files") {
  temporary_directory dir;
  const auto configuration = dir.path() / "etc/ringmaster/caf-application.conf",
             data = dir.path() / "share/ringmaster/x";
  touch(configuration);
  touch(data);
  CHECK(find_configuration(dir.path() / "bin") == configuration);
  CHECK(find_data("x", dir.path() / "bin") == data);
}

TEST_CASE("places: a missing file is not found, in any working directory") {
  temporary_directory dir;
  touch(dir.path() / "here/config/caf-application.conf");
  const auto before = fs::current_path();
  fs::current_path(dir.path() / "here");
  CHECK(!find_data("no_such_data", dir.path() / "bin"));
  auto found = find_configuration(dir.path() / "bin");
  fs::current_path(before);
  CHECK((!found || *found == "/etc/ringmaster/caf-application.conf"));
  CHECK(program_directory() == fs::path{RINGMASTER_PROGRAM}.parent_path());
}
