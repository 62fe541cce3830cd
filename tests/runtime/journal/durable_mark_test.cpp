#include "runtime/journal/durable_mark.hpp"

#include "messages/errc.hpp"
#include "tests/support/journal_directory.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::optional<uint64_t> value_in(const std::filesystem::path& dir) {
  auto value = durable_mark::read(dir);
  REQUIRE_MESSAGE(value, render(value.error()));
  return *value;
}

} // namespace

TEST_CASE("durable mark: a missing one is none, and a new one is 0") {
  temporary_directory dir;
  CHECK(!value_in(dir.path() / "nowhere"));
  CHECK(!value_in(dir.path()));
  write_content(dir.path() / durable_mark::file_name, ""); // as a creation that was cut short leaves it
  CHECK(!value_in(dir.path()));
  auto mark = durable_mark::open(dir.path());
  REQUIRE_MESSAGE(mark, render(mark.error()));
  CHECK(mark->value() == 0);
  CHECK(value_in(dir.path()) == 0);
}

TEST_CASE("durable mark: its number is read by others and when it is opened again") {
  temporary_directory dir;
  for (uint64_t value : {uint64_t{1}, uint64_t{42}, uint64_t{1'000'000'007}, UINT64_MAX}) {
    auto mark = durable_mark::open(dir.path());
    REQUIRE(mark);
    CHECK(!mark->raise(value));
    CHECK(mark->value() == value);
    auto moved = std::move(*mark);
    CHECK(value_in(dir.path()) == value);
    CHECK(durable_mark::open(dir.path())->value() == value);
  }
}

TEST_CASE("durable mark: every changed, removed or added byte is noticed") {
  temporary_directory dir;
  const auto file = dir.path() / durable_mark::file_name;
  REQUIRE(!durable_mark::open(dir.path())->raise(1234567));
  const auto good = content_of(file);
  auto is_corrupt = [&](const std::string& text) {
    write_content(file, text);
    auto value = durable_mark::read(dir.path());
    return !value && code_of(value.error()) == errc::corrupt
           && code_of(durable_mark::open(dir.path()).error()) == errc::corrupt;
  };
  for (size_t at = 0; at < good.size(); ++at)
    for (int change : {1, 2, 4, 8}) { // a digit for another, too
      auto bad = good;
      bad[at] = static_cast<char>(bad[at] ^ change);
      CAPTURE(bad);
      CHECK(is_corrupt(bad));
    }
  for (size_t size = 1; size < good.size(); ++size)
    CHECK(is_corrupt(good.substr(0, size)));
  CHECK(is_corrupt(good + "\n"));
  write_content(file, good);
  CHECK(value_in(dir.path()) == 1234567);
}
