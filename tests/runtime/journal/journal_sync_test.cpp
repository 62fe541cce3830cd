// What is on the disk, and what is only written.
#include "runtime/journal/durable_mark.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "tests/support/journal_directory.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::atomic<int> syncs = 0;
std::atomic<bool> disk_fails = false;

} // namespace

/// RocksDB syncs its files by this function, and finds ours before the C library's.
extern "C" int fdatasync(int file) {
  ++syncs;
  if (disk_fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}

namespace {

/// As long as it lives everything can be written and nothing synced.
struct failing_disk {
  failing_disk() { disk_fails = true; }
  ~failing_disk() { disk_fails = false; }
};

struct synced_journal {
  explicit synced_journal(journal_sync sync, uint64_t retain_records = 1000) {
    journal_store::options opts;
    opts.dir = dir.path();
    opts.sync = sync;
    opts.retain_records = retain_records;
    auto opened = journal_store::open(opts);
    REQUIRE_MESSAGE(opened, render(opened.error()));
    store = std::move(*opened);
  }

  /// Operation `sequence`'s seven records.
  caf::error append(uint64_t sequence) { return store->append(whole_operation(7, sequence)); }

  uint64_t mark() const {
    auto value = durable_mark::read(dir.path());
    REQUIRE(value);
    return value->value_or(0);
  }

  void check_history(const std::vector<uint64_t>& sequences) const {
    std::vector<proto::Record> expected;
    for (auto sequence : sequences)
      for (auto& record : whole_operation(7, sequence))
        expected.push_back(record);
    CHECK(store->state().last_index() == expected.size());
    CHECK(*store->digest() == digest_of(expected));
    CHECK(store->operations()->size() == sequences.size());
  }

  temporary_directory dir;
  std::unique_ptr<journal_store> store;
};

} // namespace

TEST_CASE("journal sync: the durable mark is where the disk is, not where the log is") {
  for (auto sync : {journal_sync::never, journal_sync::interval, journal_sync::always}) {
    CAPTURE(static_cast<int>(sync));
    const bool at_once = sync == journal_sync::always;
    synced_journal x{sync, 20};
    auto synced_before = syncs.load();
    REQUIRE(!x.append(1));
    CHECK(x.mark() == (at_once ? 7 : 0));
    CHECK(syncs - synced_before == (at_once ? 1 : 0));
    synced_before = syncs;
    REQUIRE(!x.store->flush());
    CHECK(x.mark() == 7);
    CHECK((at_once || syncs - synced_before == 1));
    REQUIRE(!x.append(2));
    REQUIRE(!x.append(3)); // older ones go
    CHECK(x.mark() == (at_once ? 21 : 7));
    REQUIRE(!x.store->flush());
    CHECK(x.mark() == 21);
  }
}

TEST_CASE("journal sync: a batch that was written but not synced is an error, and appears once when it is repeated") {
  for (bool flushed : {false, true}) {
    CAPTURE(flushed);
    synced_journal x{journal_sync::always};
    REQUIRE(!x.append(1));
    {
      failing_disk now;
      auto problem = x.append(2);
      CHECK_MESSAGE(code_of(problem) == errc::io_error, render(problem));
      CHECK(x.mark() == 7);
    }
    if (flushed)
      CHECK(!x.store->flush());
    auto again = whole_operation(7, 2);
    for (auto& record : whole_operation(7, 3)) // what has come meanwhile
      again.push_back(record);
    CHECK(!x.store->append(again));
    x.check_history({1, 2, 3});
    CHECK(x.mark() == 21);
    CHECK(!x.append(4));
    x.check_history({1, 2, 3, 4});
  }
}

TEST_CASE("journal sync: a disk that fails for long causes neither losses nor duplicates") {
  synced_journal x{journal_sync::always};
  REQUIRE(!x.append(1));
  {
    failing_disk now;
    for (int i = 0; i < 3; ++i)
      CHECK(code_of(x.append(2)) == errc::io_error);
    CHECK(code_of(x.store->flush()) == errc::io_error);
    CHECK(x.mark() == 7);
  }
  CHECK(!x.append(2));
  x.check_history({1, 2});
}

TEST_CASE("journal sync: records appended after a failed flush are new") {
  synced_journal x{journal_sync::never};
  REQUIRE(!x.append(1));
  {
    failing_disk now;
    CHECK(code_of(x.store->flush()) == errc::io_error);
    CHECK(x.mark() == 0);
  }
  CHECK(!x.append(2));
  x.check_history({1, 2});
  CHECK(!x.store->flush());
  CHECK(x.mark() == 14);
}

TEST_CASE("journal sync: after a failed disk lost acknowledged records, new ones are kept") {
  synced_journal x{journal_sync::never};
  REQUIRE(!x.append(1));
  auto log = find_file(x.dir.path(), ".log");
  auto size = std::filesystem::file_size(log);
  REQUIRE(!x.append(2));
  {
    failing_disk now;
    CHECK(code_of(x.store->flush()) == errc::io_error);
  }
  std::filesystem::resize_file(log, size); // the system gives up pages that it could not write
  CHECK(!x.append(3));
  x.check_history({1, 3});
}
