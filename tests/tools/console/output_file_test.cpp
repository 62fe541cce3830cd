#include "tools/console/output_file.hpp"

#include "messages/errc.hpp"
#include "tests/support/file_content.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace ringmaster;
using namespace ringmaster::test;
namespace fs = std::filesystem;

TEST_CASE("output file: replaced whole, with its permissions, or not at all") {
  temporary_directory dir;
  auto file = dir.path() / "file", link = dir.path() / "link";
  write_content(file, "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(file, link);
  CHECK(!write_output_file(link.string(), "new", "the file"));
  CHECK(fs::is_symlink(link));
  CHECK(content_of(file) == "new");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(!fs::exists(file.string() + ".new"));
  CHECK(!write_output_file((dir.path() / "first").string(), "new", "the file")); // there was none
  CHECK(content_of(dir.path() / "first") == "new");
  auto problem = write_output_file((dir.path() / "nowhere" / "file").string(), "new", "the file");
  CHECK(render(problem).find("cannot write the file") != std::string::npos);
  CHECK(!write_output_file("/dev/null", "new", "the file"));
}

TEST_CASE("output file: a full disk leaves what was there, and no part of what has no room") {
  temporary_directory dir;
  const auto there = dir.path() / "there", other = dir.path() / "other";
  write_content(there, "old");
  const std::string text(100'000, 'x');
  std::string first, second;
  {
    file_size_limit few{50'000};
    first = render(write_output_file(there.string(), text, "the picture"));
    second = render(write_output_file(other.string(), text, "the picture"));
  }
  const std::string why = "': File too large: the limit on the size of a file is 48.8 KiB for this process; "
                          "`ulimit -f unlimited` raises it";
  CHECK(first == "cannot write the picture '" + there.string() + why);
  CHECK(second == "cannot write the picture '" + other.string() + why);
  CHECK(content_of(there) == "old");
  CHECK(std::distance(fs::directory_iterator{dir.path()}, fs::directory_iterator{}) == 1);
}

TEST_CASE("output file: to try one leaves what is there, and nothing where nothing was") {
  temporary_directory dir;
  const auto there = (dir.path() / "there").string(), other = (dir.path() / "other").string();
  write_content(there, "old");
  CHECK(!try_output_file(there, "the picture"));
  CHECK(content_of(there) == "old");
  CHECK(!try_output_file(other, "the picture"));
  CHECK(!fs::exists(other));
  CHECK(!try_output_file("/dev/null", "the picture"));
  CHECK(render(try_output_file(there + "/below", "the picture"))
        == "cannot write the picture '" + there + "/below': Not a directory");
}
