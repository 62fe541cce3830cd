#include "runtime/journal/durable_mark.hpp"
#include "tests/support/journal_directory.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rocksdb/db.h>

#include <functional>

using namespace ringmaster;
using namespace ringmaster::test;
namespace fs = std::filesystem;

namespace {

// Changes the database behind the journal's back.
void with_database(const fs::path& dir, const std::function<void(rocksdb::DB&, rocksdb::ColumnFamilyHandle*)>& change,
                   const std::string& family) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (auto name : {"default", "timeline", "operations", "meta"})
    families.emplace_back(name, rocksdb::ColumnFamilyOptions{});
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  REQUIRE(rocksdb::DB::Open({}, dir.string(), families, &handles, &db).ok());
  for (size_t i = 0; i < handles.size(); ++i)
    if (families[i].name == family)
      change(*db, handles[i]);
  for (auto* handle : handles)
    db->DestroyColumnFamilyHandle(handle);
  delete db;
}

} // namespace

TEST_CASE("journal directory: a missing record is named") {
  temporary_directory dir;
  leave_closed(dir.path());
  with_database(
    dir.path(),
    [](auto& db, auto* timeline) {
      REQUIRE(db.Delete({}, timeline, std::string{"\0\0\0\0\0\0\0\x2A", 8}).ok());
    },
    "timeline");
  check_corrupt(dir.path());
  CHECK(render(open_and_read(dir.path(), false)).find("record 42 is missing") != std::string::npos);
}

TEST_CASE("journal directory: a new one, and its files, are for their owner only; an old one's files become so") {
  const auto permissions = [](const fs::path& path) { return fs::status(path).permissions() & fs::perms::mask; };
  const auto only_owner = [&](const fs::path& in) {
    size_t count = 0;
    for (auto& each : fs::directory_iterator{in}) {
      CAPTURE(each.path().string());
      CHECK(permissions(each.path()) == (fs::perms::owner_read | fs::perms::owner_write));
      ++count;
    }
    CHECK(count >= 5); // the mark, CURRENT, IDENTITY, LOCK and a log at least
  };
  temporary_directory dir;
  const auto made = dir.path() / "new" / "journal";
  leave_closed(made);
  CHECK(permissions(made) == fs::perms::owner_all);
  only_owner(made);
  for (auto& each : fs::directory_iterator{made})
    fs::permissions(each.path(), fs::perms::group_read | fs::perms::others_read, fs::perm_options::add);
  leave_closed(made);
  only_owner(made);
}

TEST_CASE("journal directory: an earlier or later format is refused with both versions and what to do") {
  for (std::string version : {"1", "3"}) {
    temporary_directory dir;
    leave_closed(dir.path());
    with_database(
      dir.path(), [&](auto& db, auto* meta) { REQUIRE(db.Put({}, meta, "format_version", version).ok()); }, "meta");
    for (auto writing : {false, true}) {
      auto err = open_and_read(dir.path(), writing);
      CHECK(code_of(err) == errc::wrong_version);
      CHECK(render(err)
            == fmt::format("journal '{}' has format {}, and this program reads and writes format 2: read it with "
                           "the version of Ringmaster that wrote it, or move the directory away to begin a new one",
                           dir.path().string(), version));
    }
  }
}

TEST_CASE("journal directory: a later format with another family is refused") {
  temporary_directory dir;
  leave_closed(dir.path());
  with_database(
    dir.path(),
    [](auto& db, auto*) {
      rocksdb::ColumnFamilyHandle* handle = nullptr;
      REQUIRE(db.CreateColumnFamily({}, "snapshots", &handle).ok());
      db.DestroyColumnFamilyHandle(handle);
    },
    "meta");
  for (auto writing : {false, true})
    CHECK(code_of(open_and_read(dir.path(), writing)) == errc::wrong_version);
}

TEST_CASE("journal directory: a directory that is no journal is refused and not changed") {
  temporary_directory dir;
  auto check = [](const fs::path& path, bool writing, errc expected) {
    auto err = open_and_read(path, writing);
    CHECK_MESSAGE(code_of(err) == expected, render(err));
    CHECK(render(err).find(path.string()) != std::string::npos);
  };
  check(dir.path() / "nowhere", false, errc::invalid_argument);
  CHECK(!fs::exists(dir.path() / "nowhere"));
  check(dir.path(), false, errc::invalid_argument);
  CHECK(fs::is_empty(dir.path()));
  write_content(dir.path() / "file", "x");
  check(dir.path() / "file", false, errc::invalid_argument);
  check(dir.path() / "file", true, errc::io_error);
  check("/proc/ringmaster/journal", true, errc::io_error);
  rocksdb::DB* db = nullptr;
  rocksdb::Options opts;
  opts.create_if_missing = true;
  auto foreign = dir.path() / "foreign";
  REQUIRE(rocksdb::DB::Open(opts, foreign.string(), &db).ok());
  delete db;
  auto before = listing(foreign);
  check(foreign, false, errc::invalid_argument);
  check(foreign, true, errc::invalid_argument);
  CHECK(listing(foreign) == before);
}

TEST_CASE("journal directory: an interrupted creation is continued") {
  for (auto families : {"none", "some"}) {
    temporary_directory dir;
    REQUIRE(durable_mark::open(dir.path()));
    rocksdb::DB* db = nullptr;
    rocksdb::Options opts;
    opts.create_if_missing = true;
    if (std::string{families} == "some") {
      REQUIRE(rocksdb::DB::Open(opts, dir.path().string(), &db).ok());
      rocksdb::ColumnFamilyHandle* handle = nullptr;
      REQUIRE(db->CreateColumnFamily({}, "timeline", &handle).ok());
      db->DestroyColumnFamilyHandle(handle);
      delete db;
    }
    CHECK(code_of(open_and_read(dir.path(), false)) == errc::invalid_argument);
    auto journal = open_journal(dir.path());
    REQUIRE_MESSAGE(journal, render(journal.error()));
    CHECK(!(*journal)->append(whole_operation(7, 1)));
    CHECK((*journal)->read()->size() == 7);
  }
}
