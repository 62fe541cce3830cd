#include "runtime/journal/durable_mark.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "tests/support/file_size_limit.hpp"
#include "tests/support/journal_directory.hpp"
#include "tests/support/no_descriptors.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <random>

#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::test;
namespace fs = std::filesystem;

TEST_CASE("journal damage: durable records survive SIGKILL") {
  for (uint64_t records : {7, 70, 2100}) {
    temporary_directory dir;
    auto reported = leave_killed(dir.path(), records);
    auto before = listing(dir.path());
    auto reader = journal_store::open_read_only(dir.path());
    REQUIRE_MESSAGE(reader, render(reader.error()));
    CHECK((*reader)->read()->size() >= reported);
    CHECK(listing(dir.path()) == before);
    auto journal = open_journal(dir.path());
    REQUIRE_MESSAGE(journal, render(journal.error()));
    auto survivors = (*journal)->read();
    REQUIRE(survivors);
    CHECK(survivors->size() >= reported);
    CHECK(survivors->size() % 7 == 0); // batches are whole
    CHECK((*journal)->operations()->size() == survivors->size() / 7);
  }
}

TEST_CASE("journal damage: a running owner is named, and is not disturbed by a reader") {
  temporary_directory dir;
  child_process writer{{RINGMASTER_JOURNAL_WRITER, dir.path().string(), "3"}};
  while (writer.read_line() != "21") {
  }
  auto second = open_journal(dir.path());
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
  auto first = open_journal(dir.path());
  REQUIRE(first);
  for (auto attempt = 0; attempt < 2; ++attempt) {
    auto second = open_journal(dir.path());
    REQUIRE(!second);
    CHECK(code_of(second.error()) == errc::in_use);
    CHECK(render(second.error()).find("by this process") != std::string::npos);
  }
}

TEST_CASE("journal damage: a log that ends within a record loses only that batch") {
  temporary_directory dir;
  auto reported = leave_killed(dir.path(), 70);
  auto log = find_file(dir.path(), ".log");
  // As after a loss of power: the last bytes and the mark, which is never synced, did not reach the disk.
  fs::resize_file(log, fs::file_size(log) - 5);
  fs::remove(dir.path() / durable_mark::file_name);
  REQUIRE(durable_mark::open(dir.path()));
  auto journal = open_journal(dir.path());
  REQUIRE_MESSAGE(journal, render(journal.error()));
  auto records = (*journal)->read();
  REQUIRE(records);
  CHECK(records->size() % 7 == 0);
  CHECK(records->size() + 7 >= reported);
  CHECK(!(*journal)->append(whole_operation(7, 1'000'000)));
}

TEST_CASE("journal damage: a log that ends before durable records is corrupt, and is not changed") {
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
  auto good = content_of(log);
  auto history = (*journal_store::open_read_only(dir.path()))->read();
  REQUIRE(history);
  auto digest = *(*journal_store::open_read_only(dir.path()))->digest();
  std::mt19937 random{7};
  auto noticed = 0;
  for (auto i = 0; i < 60; ++i) {
    auto bad = good;
    auto at = random() % good.size();
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    write_content(log, bad);
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
  auto bytes = content_of(table);
  for (auto at : {bytes.size() / 8, bytes.size() / 4, bytes.size() / 2}) {
    auto bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_content(table, bad);
    auto err = open_and_read(dir.path(), false);
    CHECK_MESSAGE(code_of(err) == errc::corrupt, render(err));
    CHECK(render(err).find(dir.path().string()) != std::string::npos);
  }
}

TEST_CASE("journal damage: missing and truncated files are corrupt") {
  using damage = std::function<void(const fs::path&)>;
  std::vector<std::pair<std::string, damage>> all{
    {"CURRENT removed", [](auto& dir) { fs::remove(dir / "CURRENT"); }},
    {"CURRENT empty", [](auto& dir) { write_content(dir / "CURRENT", ""); }},
    {"CURRENT cut", [](auto& dir) { write_content(dir / "CURRENT", "MANIF"); }},
    {"MANIFEST removed", [](auto& dir) { fs::remove(find_file(dir, "MANIFEST-")); }},
    {"MANIFEST empty", [](auto& dir) { write_content(find_file(dir, "MANIFEST-"), ""); }},
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
    {"mark garbled", [](auto& dir) { write_content(dir / durable_mark::file_name, "ringmaster journal, durable up"); }},
  };
  for (auto& [name, inflict] : all) {
    CAPTURE(name);
    temporary_directory dir;
    leave_closed(dir.path());
    inflict(dir.path());
    check_corrupt(dir.path());
  }
}

TEST_CASE("journal damage: without free descriptors it is not opened again, which would abort the process, but later") {
  temporary_directory dir;
  std::vector<proto::Record> history;
  auto journal = open_journal(dir.path());
  REQUIRE(journal);
  caf::error err;
  auto add = [&](std::vector<proto::Record> records) {
    history.insert(history.end(), records.begin(), records.end());
    err = (*journal)->append(records);
  };
  {
    no_descriptors left;
    for (uint64_t count = 0; !err && count < 400; ++count)
      add({device_died(1, std::string(64 << 10, 'x'))}); // until its log is to go on in another file
    CHECK_MESSAGE(code_of(err) == errc::io_error, render(err));
    auto last = history.back();
    for (int again = 0; again < 3; ++again)
      CHECK(code_of((*journal)->append({&last, 1})) == errc::io_error);
  }
  auto last = history.back();
  err = (*journal)->append({&last, 1});
  REQUIRE_MESSAGE(!err, render(err));
  CHECK(*(*journal)->digest() == digest_of(history));
}

TEST_CASE("journal damage: a full disk is an error until it has space, and then every record appears once") {
  temporary_directory dir;
  std::vector<proto::Record> history;
  auto journal = open_journal(dir.path());
  REQUIRE(journal);
  caf::error err;
  {
    file_size_limit limit{100'000};
    for (uint64_t sequence = 1; !err && sequence < 10'000; ++sequence) {
      auto records = whole_operation(7, sequence);
      history.insert(history.end(), records.begin(), records.end());
      err = (*journal)->append(records);
    }
    CHECK_MESSAGE(code_of(err) == errc::io_error, render(err));
    CHECK(render(err).find("File too large") != std::string::npos);
  }
  auto flushed = (*journal)->flush(); // recovers, though nothing is appended
  CHECK_MESSAGE(!flushed, render(flushed));
  std::vector<proto::Record> again{history.end() - 7, history.end()};
  again.push_back(device_died(1, "late"));
  history.push_back(again.back());
  REQUIRE(!(*journal)->append(again));
  CHECK(*(*journal)->digest() == digest_of(history));
  journal->reset();
  CHECK(*(*open_journal(dir.path()))->digest() == digest_of(history));
}

TEST_CASE("journal damage: if its directory was removed, the loss is counted and a new journal continues there") {
  for (auto how : {"removed", "moved away", "replaced"}) {
    CAPTURE(how);
    temporary_directory dir;
    const auto path = dir.path() / "journal";
    auto journal = open_journal(path);
    REQUIRE_MESSAGE(journal, render(journal.error()));
    auto ids = record_at(0);
    ids.mutable_ids_reserved()->set_node_id(64);
    ids.mutable_ids_reserved()->set_device_id(1024);
    ids.mutable_ids_reserved()->set_comm_id(2048);
    REQUIRE_FALSE((*journal)->append({&ids, 1}));
    REQUIRE_FALSE((*journal)->append(whole_operation(7, 1)));
    CHECK_FALSE((*journal)->keep_in_place());
    CHECK_FALSE((*journal)->take_loss());

    if (how == std::string{"moved away"})
      fs::rename(path, dir.path() / "elsewhere");
    else
      fs::remove_all(path);
    if (how == std::string{"replaced"})
      fs::create_directory(path);
    auto err = (*journal)->keep_in_place();
    CHECK_MESSAGE(!err, render(err));
    auto loss = (*journal)->take_loss();
    REQUIRE(loss);
    CHECK(loss->records == 8);
    CHECK(loss->cause.find(path.string()) != std::string::npos);
    CHECK_FALSE((*journal)->take_loss());
    CHECK_FALSE((*journal)->keep_in_place());
    CHECK_FALSE((*journal)->take_loss());

    REQUIRE_FALSE((*journal)->append(whole_operation(7, 2)));
    journal->reset();
    auto again = journal_store::open_read_only(path);
    REQUIRE_MESSAGE(again, render(again.error()));
    auto records = (*again)->read();
    REQUIRE(records);
    CHECK(records->size() == 8); // the ids, and what came since
    CHECK((*again)->state().node_id() == 64);
    CHECK((*again)->state().device_id() == 1024);
    CHECK((*again)->state().comm_id() == 2048);
    if (how == std::string{"moved away"})
      CHECK(open_journal(dir.path() / "elsewhere"));
  }
}

TEST_CASE("journal damage: if no new journal can be created, this is an error until it can") {
  temporary_directory dir;
  const auto path = dir.path() / "journal";
  auto journal = open_journal(path);
  REQUIRE_MESSAGE(journal, render(journal.error()));
  REQUIRE_FALSE((*journal)->append(whole_operation(7, 1)));
  fs::remove_all(path);
  std::ofstream{path} << "a file in its place";
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto err = (*journal)->keep_in_place();
    CHECK(code_of(err) == errc::io_error);
    CHECK(render(err).find(path.string()) != std::string::npos);
  }
  auto loss = (*journal)->take_loss();
  REQUIRE(loss);
  CHECK(loss->records == 7); // once
  CHECK(loss->cause.find("later records go to a new journal there once it can be created") != std::string::npos);
  CHECK_FALSE((*journal)->take_loss());
  CHECK_FALSE((*journal)->read()); // an error, not a crash
  fs::remove(path);
  CHECK_FALSE((*journal)->keep_in_place());
  CHECK_FALSE((*journal)->take_loss());
  REQUIRE_FALSE((*journal)->append(whole_operation(7, 2)));
  CHECK((*journal)->read()->size() == 8);
}
