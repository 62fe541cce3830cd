#include "runtime/journal/journal_store.hpp"

#include "messages/errc.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "tests/support/records.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::unique_ptr<journal_store> opened(const std::filesystem::path& dir, uint64_t retain_records = 1000,
                                      journal_sync sync = journal_sync::never) {
  journal_store::options opts;
  opts.dir = dir;
  opts.sync = sync;
  opts.retain_records = retain_records;
  auto journal = journal_store::open(opts);
  if (!journal)
    FAIL(render(journal.error()));
  return std::move(*journal);
}

std::vector<uint64_t> indices(const journal_store& journal, const record_filter& filter) {
  std::vector<uint64_t> result;
  auto err = journal.read(filter, [&](uint64_t index, proto::Record&) {
    result.push_back(index);
    return true;
  });
  CHECK_MESSAGE(!err, render(err));
  return result;
}

void append(journal_store& journal, const std::vector<proto::Record>& records) {
  auto err = journal.append(records);
  REQUIRE_MESSAGE(!err, render(err));
}

// Device 3 dies during operation 2 of communicator 7; communicator 8's operation 1 is still running.
std::vector<proto::Record> eventful_history() {
  auto records = whole_operation(7, 1);                                 // 1 to 7
  records.push_back(operation_enqueued(7, 2, 10));                      // 8
  records.push_back(operation_enqueued(8, 1, 11));                      // 9
  records.push_back(operation_started(8, 1, 1, 12));                    // 10
  records.push_back(device_died(3, "killed", 13));                      // 11
  records.push_back(operation_ended(7, 2, gpu_sim::FAILED, 14));        // 12
  records.push_back(command_ended(3, 5, "copy_in", "device died", 15)); // 13
  records.push_back(command_ended(4, 6, "copy_in", "", 16));            // 14
  return records;
}

} // namespace

TEST_CASE("journal store: keeps records in order across a restart") {
  temporary_directory dir;
  auto history = eventful_history();
  {
    auto journal = opened(dir.path());
    append(*journal, history);
    append(*journal, whole_operation(9, 1));
  }
  auto journal = opened(dir.path());
  auto records = journal->read();
  REQUIRE(records);
  REQUIRE(records->size() == 21);
  for (size_t i = 0; i < history.size(); ++i)
    CHECK(record_bytes((*records)[i]) == record_bytes(history[i]));
  append(*journal, {device_died(1, "late")});
  CHECK(journal->state().last_index() == 22);
  CHECK(journal->tail(1)->at(0).device_died().cause() == "late");
}

TEST_CASE("journal store: has the same contents in memory and on disk") {
  temporary_directory dir;
  for (auto& journal : {opened(dir.path()), opened({})}) {
    append(*journal, eventful_history());
    auto select = [&](auto set) {
      record_filter filter;
      set(filter);
      return indices(*journal, filter);
    };
    using indices_t = std::vector<uint64_t>;
    CHECK(select([](auto& f) { f.communicator = communicator_id{8}; }) == indices_t{9, 10});
    CHECK(select([](auto& f) { f.device = device_id{3}; }) == indices_t{5, 11, 13});
    CHECK(select([](auto& f) { f.kind = "command"; }) == indices_t{13, 14});
    CHECK(select([](auto& f) { f.outcome = gpu_sim::FAILED; }) == indices_t{8, 12, 13});
    CHECK(select([](auto& f) { f.outcome = gpu_sim::IN_PROGRESS; }) == indices_t{9, 10});
    CHECK(select([](auto& f) { f.outcome = gpu_sim::SUCCESS; }) == indices_t{1, 2, 3, 4, 5, 6, 7, 14});
    CHECK(select([](auto& f) { f.last = 2, f.kind = "operation"; }) == indices_t{10, 12});
    CHECK(select([](auto& f) { f.last = 3; }) == indices_t{12, 13, 14});
    CHECK(select([](auto& f) { f.after = 12; }) == indices_t{13, 14});
    CHECK(select([](auto& f) { f.after = 14; }).empty());
    CHECK(select([](auto& f) { f.after = 12, f.last = 9; }) == indices_t{13, 14});
    CHECK(journal->tail(0)->empty());
    record_filter filter;
    filter.kind = "weather";
    auto wrong = journal->read(filter);
    REQUIRE(!wrong);
    CHECK(code_of(wrong.error()) == errc::invalid_argument);
    CHECK(render(wrong.error()).find("'weather'") != std::string::npos);
  }
}

TEST_CASE("journal store: has the state of each operation, and the ids that were used") {
  temporary_directory dir;
  for (auto& journal : {opened(dir.path()), opened({})}) {
    for (auto& record : eventful_history())
      append(*journal, {record});
    auto failed = journal->operation({communicator_id{7}, sequence_number{2}});
    REQUIRE((failed && *failed));
    CHECK((*failed)->status() == gpu_sim::FAILED);
    CHECK((*failed)->error() == "device 0x3 died");
    CHECK((*failed)->first_index() == 8);
    CHECK((*failed)->last_index() == 12);
    auto running = journal->operation({communicator_id{8}, sequence_number{1}});
    REQUIRE((running && *running));
    CHECK((*running)->status() == gpu_sim::IN_PROGRESS);
    CHECK((*running)->attempts() == 1);
    CHECK(!*journal->operation({communicator_id{8}, sequence_number{2}}));
    CHECK(journal->operations()->size() == 3);
    CHECK(journal->state().comm_id() == 8);
    CHECK(journal->state().stream_id() == 6);
  }
}

TEST_CASE("journal store: keeps no more records than configured, and no operations without records") {
  temporary_directory dir;
  std::mt19937 random{20260101};
  for (auto& journal : {opened(dir.path(), 40), opened({}, 40)}) {
    uint64_t appended = 0;
    for (uint64_t sequence = 1; sequence <= 60; ++sequence) {
      auto records = whole_operation(1, sequence);
      for (auto more = random() % 13; more > 0; --more) // up to far more than the limit in one batch
        for (auto& record : whole_operation(2, sequence * 100 + more))
          records.push_back(record);
      append(*journal, records);
      appended += records.size();
      auto& state = journal->state();
      CHECK(state.last_index() == appended);
      CHECK(state.last_index() - state.first_index() + 1 <= 40);
      CHECK((appended < 40 || state.last_index() - state.first_index() + 1 >= 35));
      auto kept = indices(*journal, {});
      CHECK(kept.front() == state.first_index());
      CHECK(kept.back() == state.last_index());
      auto operations = journal->operations();
      REQUIRE(operations);
      CHECK(operations->size() <= 7);
      for (auto& operation : *operations)
        CHECK(operation.last_index() >= state.first_index());
    }
  }
}

TEST_CASE("journal store: a lower limit takes effect when it is opened") {
  temporary_directory dir;
  {
    auto journal = opened(dir.path(), 100'000);
    for (uint64_t sequence = 1; sequence <= 1500; ++sequence)
      append(*journal, whole_operation(1, sequence));
  }
  auto journal = opened(dir.path(), 50);
  CHECK(journal->state().first_index() == 10451);
  CHECK(indices(*journal, {}).size() == 50);
  CHECK(journal->operations()->size() == 8);
}

TEST_CASE("journal store: one digest for one history") {
  temporary_directory dir;
  auto history = eventful_history();
  auto disk = opened(dir.path());
  auto memory = opened({});
  append(*disk, history);
  for (auto& record : history)
    append(*memory, {record});
  CHECK(*disk->digest() == *memory->digest());
  CHECK(*disk->digest() == digest_of(history));
  history.back().set_time_ns(history.back().time_ns() + 1);
  CHECK(*disk->digest() != digest_of(history));
  std::swap(history[0], history[1]);
  CHECK(digest_of(history) != digest_of(eventful_history()));
}

TEST_CASE("journal store: stores text that is not UTF-8, and can read it again") {
  temporary_directory dir;
  auto journal = opened(dir.path());
  append(*journal, {device_died(1, "d\xE9"
                                   "faut \xC3\xA9")});
  auto records = journal->read();
  REQUIRE(records);
  CHECK(records->at(0).device_died().cause()
        == "d\xEF\xBF\xBD"
           "faut \xC3\xA9");
}

TEST_CASE("journal store: an empty journal can be read, and an empty batch adds nothing") {
  temporary_directory dir;
  {
    auto journal = opened(dir.path());
    append(*journal, {});
    CHECK(!journal->flush());
    CHECK(journal->read()->empty());
    CHECK(journal->tail(5)->empty());
    CHECK(journal->state().last_index() == 0);
  }
  auto reader = journal_store::open_read_only(dir.path());
  REQUIRE(reader);
  CHECK((*reader)->read()->empty());
}

TEST_CASE("journal store: a reader cannot write") {
  temporary_directory dir;
  { append(*opened(dir.path()), eventful_history()); }
  auto reader = journal_store::open_read_only(dir.path());
  REQUIRE(reader);
  std::vector<proto::Record> record{device_died(1, "x")};
  CHECK(code_of((*reader)->append(record)) == errc::invalid_argument);
  CHECK(code_of((*reader)->flush()) == errc::invalid_argument);
  CHECK((*reader)->state().last_index() == 14);
}

TEST_CASE("journal store: options are checked") {
  journal_store::options opts;
  opts.retain_records = 0;
  CHECK(code_of(journal_store::open(opts).error()) == errc::invalid_argument);
  CHECK(parse_journal_sync("interval") == journal_sync::interval);
  auto wrong = parse_journal_sync("often");
  REQUIRE(!wrong);
  CHECK(render(wrong.error()) == "the journal's sync policy is 'often'; allowed are always, interval, never");
}
