#include "runtime/text/text_file.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace ringmaster;

TEST_CASE("text file: is read completely, or refused with its path and the reason") {
  test::temporary_directory dir;
  const auto file = (dir.path() / "text").string();
  auto refusal = [](const std::string& path) {
    auto read = read_text_file(path);
    REQUIRE(!read.engaged());
    CHECK(code_of(read.error()) == errc::io_error);
    return render(read.error());
  };
  CHECK(refusal(file) == "cannot read " + file + ": No such file or directory");
  CHECK(refusal(dir.path().string()) == dir.path().string() + " is a directory: name the file in it");
  const auto text = std::string(100'000, 'x') + '\0' + "\r\n";
  std::ofstream{file, std::ios::binary} << text;
  auto read = read_text_file(file);
  REQUIRE(read.engaged());
  CHECK((*read == text));
  std::ofstream{file, std::ios::trunc};
  CHECK(read_text_file(file)->empty());
  std::filesystem::resize_file(file, 16 << 20);
  CHECK(read_text_file(file)->size() == 16 << 20);
  std::filesystem::resize_file(file, (16 << 20) + 1);
  CHECK(refusal(file) == file + " is larger than 16 MiB, the limit for such a file");
}

TEST_CASE("text file: a byte order mark is removed, and UTF-16 is refused") {
  test::temporary_directory dir;
  const auto file = (dir.path() / "text").string();
  std::ofstream{file, std::ios::binary} << "\xef\xbb\xbf{}";
  CHECK(*read_text_file(file) == "{}");
  std::ofstream{file, std::ios::binary | std::ios::trunc} << std::string{"\xfe\xff\0{\0}", 6};
  CHECK(render(read_text_file(file).error())
        == file + ": it is in UTF-16, and must be in UTF-8: `iconv -f UTF-16 -t UTF-8` converts it");
}
