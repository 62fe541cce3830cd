#include "messages/errc.hpp"
#include "runtime/durable_mark.hpp"
#include "runtime/journal_store.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/records.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>

using namespace ringmaster;
using namespace ringmaster::test;
namespace fs = std::filesystem;

namespace {

caf::expected<std::unique_ptr<journal_store>> open(const fs::path& dir) {
  journal_store::options opts;
  opts.dir = dir;
  return journal_store::open(opts);
}

std::string writer_command() {
  return RINGMASTER_JOURNAL_WRITER;
}

// What a process leaves that was killed when `records` or more were durable; returns how many it had reported.
uint64_t leave_killed(const fs::path& dir, uint64_t records) {
  child_process writer{{writer_command(), dir.string(), "100000"}};
  REQUIRE(writer.read_line() == "open");
  uint64_t reported = 0;
  while (reported < records)
    reported = std::stoull(writer.read_line());
  writer.kill();
  for (auto line = writer.read_line(); !line.empty(); line = writer.read_line())
    reported = std::stoull(line);
  return reported;
}

void leave_closed(const fs::path& dir) {
  auto journal = open(dir);
  REQUIRE(journal);
  for (uint64_t sequence = 1; sequence <= 200; ++sequence)
    REQUIRE(!(*journal)->append(whole_operation(7, sequence)));
}

std::string contents(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void replace(const fs::path& file, const std::string& bytes) {
  std::ofstream{file, std::ios::binary | std::ios::trunc} << bytes;
}

// The largest file whose name has this beginning or extension.
fs::path find_file(const fs::path& dir, const std::string& what) {
  fs::path best;
  for (auto& entry : fs::directory_iterator{dir}) {
    auto name = entry.path().filename().string();
    if ((name.starts_with(what) || name.ends_with(what)) && (best.empty() || entry.file_size() > fs::file_size(best)))
      best = entry.path();
  }
  REQUIRE(!best.empty());
  return best;
}

std::vector<std::pair<std::string, uint64_t>> listing(const fs::path& dir) {
  std::vector<std::pair<std::string, uint64_t>> files;
  for (auto& entry : fs::directory_iterator{dir})
    files.emplace_back(entry.path().filename(), entry.file_size());
  std::sort(files.begin(), files.end());
  return files;
}

// The error of whichever comes first, opening or reading.
caf::error open_and_read(const fs::path& dir, bool writing) {
  auto journal = writing ? open(dir) : journal_store::open_read_only(dir);
  if (!journal)
    return std::move(journal.error());
  auto records = (*journal)->read();
  return records ? caf::none : std::move(records.error());
}

void check_corrupt(const fs::path& dir) {
  for (auto writing : {false, true}) {
    auto err = open_and_read(dir, writing);
    CAPTURE(writing);
    CHECK_MESSAGE(code_of(err) == errc::corrupt, render(err));
    CHECK(render(err).find(dir.string()) != std::string::npos);
  }
}

} // namespace

TEST_CASE("journal damage: what was reported durable survives SIGKILL") {
  for (uint64_t records : {7, 70, 2100}) {
    temporary_directory dir;
    auto reported = leave_killed(dir.path(), records);
    auto before = listing(dir.path());
    auto reader = journal_store::open_read_only(dir.path());
    REQUIRE_MESSAGE(reader, render(reader.error()));
    CHECK((*reader)->read()->size() >= reported);
    CHECK(listing(dir.path()) == before);
    auto journal = open(dir.path());
    REQUIRE_MESSAGE(journal, render(journal.error()));
    auto survivors = (*journal)->read();
    REQUIRE(survivors);
    CHECK(survivors->size() >= reported);
    CHECK(survivors->size() % 7 == 0); // batches are whole
    CHECK((*journal)->operations()->size() == survivors->size() / 7);
  }
}

TEST_CASE("journal damage: a living owner is named, and does not mind a reader") {
  temporary_directory dir;
  child_process writer{{writer_command(), dir.path().string(), "3"}};
  while (writer.read_line() != "21") {
  }
  auto second = open(dir.path());
  REQUIRE(!second);
  CHECK(code_of(second.error()) == errc::in_use);
  CHECK(render(second.error()).find(fmt::format("by process {}", writer.pid())) != std::string::npos);
  auto before = listing(dir.path());
  auto reader = journal_store::open_read_only(dir.path());
  REQUIRE_MESSAGE(reader, render(reader.error()));
  CHECK((*reader)->read()->size() == 21);
  CHECK(listing(dir.path()) == before);
}

TEST_CASE("journal damage: the same process cannot own it twice") {
  temporary_directory dir;
  auto first = open(dir.path());
  REQUIRE(first);
  for (auto attempt = 0; attempt < 2; ++attempt) {
    auto second = open(dir.path());
    REQUIRE(!second);
    CHECK(code_of(second.error()) == errc::in_use);
    CHECK(render(second.error()).find("by this process") != std::string::npos);
  }
}

TEST_CASE("journal damage: a log that ends within a record loses that batch and no other") {
  temporary_directory dir;
  auto reported = leave_killed(dir.path(), 70);
  auto log = find_file(dir.path(), ".log");
  // As after a loss of power: the last bytes and the mark, which is never synced, did not reach the disk.
  fs::resize_file(log, fs::file_size(log) - 5);
  fs::remove(dir.path() / durable_mark::file_name);
  REQUIRE(durable_mark::open(dir.path()));
  auto journal = open(dir.path());
  REQUIRE_MESSAGE(journal, render(journal.error()));
  auto records = (*journal)->read();
  REQUIRE(records);
  CHECK(records->size() % 7 == 0);
  CHECK(records->size() + 7 >= reported);
  CHECK(!(*journal)->append(whole_operation(7, 1'000'000)));
}

TEST_CASE("journal damage: a log that ends before what was durable is corrupt, and is left alone") {
  temporary_directory dir;
  leave_killed(dir.path(), 140);
  auto log = find_file(dir.path(), ".log");
  fs::resize_file(log, fs::file_size(log) / 2);
  auto before = listing(dir.path());
  check_corrupt(dir.path());
  CHECK(render(open_and_read(dir.path(), true)).find("were durable") != std::string::npos);
  CHECK(listing(dir.path()) == before);
}

TEST_CASE("journal damage: no flipped byte in the log goes unnoticed or changes a record") {
  temporary_directory dir;
  auto reported = leave_killed(dir.path(), 210);
  auto log = find_file(dir.path(), ".log");
  auto good = contents(log);
  auto history = (*journal_store::open_read_only(dir.path()))->read();
  REQUIRE(history);
  auto digest = *(*journal_store::open_read_only(dir.path()))->digest();
  std::mt19937 random{7};
  auto noticed = 0;
  for (auto i = 0; i < 60; ++i) {
    auto bad = good;
    auto at = random() % good.size();
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    replace(log, bad);
    auto journal = journal_store::open_read_only(dir.path());
    CAPTURE(at);
    if (!journal) {
      CHECK(code_of(journal.error()) == errc::corrupt);
      ++noticed;
      continue;
    }
    // Only what was not yet reported may be missing, as if it had never been written.
    CHECK((*journal)->state().last_index() >= reported);
    if ((*journal)->state().last_index() == history->size())
      CHECK(*(*journal)->digest() == digest);
  }
  CHECK(noticed > 40);
}

TEST_CASE("journal damage: a flipped byte in a table is corrupt") {
  temporary_directory dir;
  leave_closed(dir.path());
  auto table = find_file(dir.path(), ".sst");
  auto bytes = contents(table);
  for (auto at : {bytes.size() / 8, bytes.size() / 4, bytes.size() / 2}) {
    auto bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    replace(table, bad);
    auto err = open_and_read(dir.path(), false);
    CHECK_MESSAGE(code_of(err) == errc::corrupt, render(err));
    CHECK(render(err).find(dir.path().string()) != std::string::npos);
  }
}

TEST_CASE("journal damage: missing and truncated files are corrupt") {
  using damage = std::function<void(const fs::path&)>;
  std::vector<std::pair<std::string, damage>> all{
    {"CURRENT removed", [](auto& dir) { fs::remove(dir / "CURRENT"); }},
    {"CURRENT empty", [](auto& dir) { replace(dir / "CURRENT", ""); }},
    {"CURRENT cut", [](auto& dir) { replace(dir / "CURRENT", "MANIF"); }},
    {"MANIFEST removed", [](auto& dir) { fs::remove(find_file(dir, "MANIFEST-")); }},
    {"MANIFEST empty", [](auto& dir) { replace(find_file(dir, "MANIFEST-"), ""); }},
    {"MANIFEST cut",
     [](auto& dir) {
       auto file = find_file(dir, "MANIFEST-");
       fs::resize_file(file, fs::file_size(file) / 2);
     }},
    {"table removed", [](auto& dir) { fs::remove(find_file(dir, ".sst")); }},
    {"table cut",
     [](auto& dir) {
       auto file = find_file(dir, ".sst");
       fs::resize_file(file, fs::file_size(file) / 2);
     }},
    {"mark garbled", [](auto& dir) { replace(dir / durable_mark::file_name, "ringmaster journal, durable up"); }},
  };
  for (auto& [name, damage] : all) {
    CAPTURE(name);
    temporary_directory dir;
    leave_closed(dir.path());
    damage(dir.path());
    check_corrupt(dir.path());
  }
}

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

TEST_CASE("journal damage: a missing record is named") {
  temporary_directory dir;
  leave_closed(dir.path());
  with_database(dir.path(), [](auto& db, auto* timeline) {
    REQUIRE(db.Delete({}, timeline, std::string{"\0\0\0\0\0\0\0\x2A", 8}).ok());
  }, "timeline");
  check_corrupt(dir.path());
  CHECK(render(open_and_read(dir.path(), false)).find("record 42 is missing") != std::string::npos);
}

TEST_CASE("journal damage: a later format is refused with both versions") {
  temporary_directory dir;
  leave_closed(dir.path());
  with_database(dir.path(), [](auto& db, auto* meta) { REQUIRE(db.Put({}, meta, "format_version", "2").ok()); }, "meta");
  for (auto writing : {false, true}) {
    auto err = open_and_read(dir.path(), writing);
    CHECK(code_of(err) == errc::wrong_version);
    CHECK(render(err) == fmt::format("journal '{}' has format 2, this program reads format 1", dir.path().string()));
  }
}

TEST_CASE("journal damage: a later format with another family is refused, too") {
  temporary_directory dir;
  leave_closed(dir.path());
  with_database(dir.path(), [](auto& db, auto*) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    REQUIRE(db.CreateColumnFamily({}, "snapshots", &handle).ok());
    db.DestroyColumnFamilyHandle(handle);
  }, "meta");
  for (auto writing : {false, true})
    CHECK(code_of(open_and_read(dir.path(), writing)) == errc::wrong_version);
}

TEST_CASE("journal damage: what is no journal is refused and not touched") {
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
  replace(dir.path() / "file", "x");
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
