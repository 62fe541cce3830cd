#include "actors/hosts/journal.hpp"

#include "messages/errc.hpp"
#include "runtime/journal/record_bytes.hpp"
#include "tests/support/deterministic_system.hpp"
#include "tests/support/records.hpp"
#include "tests/support/temporary_directory.hpp"

#include <spdlog/spdlog.h>

#include <random>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

// What happened to a store, seen from outside; it outlives the store.
struct account {
  std::vector<proto::Record> records;
  std::vector<size_t> batches; // their sizes
  size_t flushes = 0;
  size_t attempts = 0; // to append
  caf::error append_error;
  caf::error flush_error;
  bool on_disk = true;
};

class counting_store final : public journal_store {
public:
  counting_store(account& books, journal_sync sync) : journal_store(sync), books_(books) {}

  caf::error append(std::span<const proto::Record> records) override {
    ++books_.attempts;
    if (books_.append_error)
      return books_.append_error;
    books_.records.insert(books_.records.end(), records.begin(), records.end());
    books_.batches.push_back(records.size());
    return caf::none;
  }
  caf::error flush() override {
    if (!books_.flush_error)
      ++books_.flushes;
    return books_.flush_error;
  }
  bool waits_for_disk() const noexcept override { return books_.on_disk; }
  const proto::JournalState& state() const override {
    state_.set_first_index(1);
    state_.set_last_index(books_.records.size());
    return state_;
  }
  caf::expected<std::optional<proto::OperationState>> operation(operation_key) const override {
    return std::optional<proto::OperationState>{};
  }
  caf::expected<std::vector<proto::OperationState>> operations() const override {
    return std::vector<proto::OperationState>{};
  }

protected:
  caf::error scan(direction towards, uint64_t after, const record_visitor& visit) const override {
    for (size_t i = after; i < books_.records.size(); ++i) {
      auto index = towards == direction::oldest_first ? i : books_.records.size() - 1 - (i - after);
      auto record = books_.records[index];
      if (!visit(index + 1, record))
        break;
    }
    return caf::none;
  }

private:
  account& books_;
  mutable proto::JournalState state_;
};

struct fixture {
  explicit fixture(journal_sync sync = journal_sync::never, journal_options opts = {}) {
    opts.store = std::make_shared<counting_store>(books, sync);
    actor = system.sys.spawn(journal, std::move(opts));
    system.deliver_all();
  }
  ~fixture() { system.stop(actor); }

  void send(const proto::Record& record) { system.self->send(actor, record); }

  proto::JournalFlushResponse flush(bool unsynced = false) {
    proto::JournalFlushRequest request;
    request.set_unsynced(unsynced);
    auto response = system.ask<proto::JournalFlushResponse>(actor, request);
    REQUIRE(response);
    return *response;
  }

  account books; // outlives the system, and with it the store
  deterministic_system system;
  journal_actor actor;
};

} // namespace

TEST_CASE("journal: writes in one batch what comes within a millisecond") {
  fixture f;
  for (auto& record : whole_operation(7, 1))
    f.send(record);
  f.system.deliver_all();
  f.system.advance(999us);
  CHECK(f.books.batches.empty());
  f.system.advance(1us);
  CHECK(f.books.batches == std::vector<size_t>{7});
  f.send(device_died(1, "killed"));
  f.system.deliver_all();
  f.system.advance(1ms);
  CHECK(f.books.batches == std::vector<size_t>{7, 1});
}

TEST_CASE("journal: a flush without a sync writes at once, and leaves the disk alone") {
  fixture f{journal_sync::never};
  f.send(device_died(1, "killed"));
  CHECK(f.flush(true).success());
  CHECK(f.books.batches == std::vector<size_t>{1});
  CHECK(f.books.flushes == 0);
  CHECK(f.flush().success());
  CHECK(f.books.flushes == 1);
  f.books.append_error = make_error(errc::io_error, "full");
  f.send(device_died(2, "killed"));
  CHECK(f.flush(true).error() == "full");
}

TEST_CASE("journal: however often it is asked to flush, a failing disk is tried at each interval only") {
  fixture f{journal_sync::never};
  f.books.append_error = make_error(errc::io_error, "full");
  for (uint64_t i = 0; i < 50; ++i) {
    f.send(device_died(i, "killed"));
    CHECK(f.flush(true).error() == "full");
    f.system.advance(2ms);
  }
  CHECK(f.books.attempts <= 4); // in 100 ms: at first, by the write that was planned, and an interval later
  f.books.append_error = caf::none;
  f.system.advance(100ms);
  CHECK(f.flush(true).success());
  CHECK(f.books.records.size() == 50);
}

TEST_CASE("journal: writes at once where every batch is to be durable") {
  fixture f{journal_sync::always};
  for (auto& record : whole_operation(7, 1))
    f.send(record);
  f.system.deliver_all();
  CHECK(f.books.batches == std::vector<size_t>{7});
}

TEST_CASE("journal: writes at once what is only kept in memory") {
  fixture f;
  f.books.on_disk = false;
  for (auto& record : whole_operation(7, 1))
    f.send(record);
  f.system.deliver_all();
  CHECK(f.books.batches == std::vector<size_t>{7});
  CHECK(!(*journal_store::open({}))->waits_for_disk());
}

TEST_CASE("journal: under load that lasts, too, a batch is written each millisecond") {
  fixture f{journal_sync::interval};
  for (int i = 0; i < 20'000; ++i) {
    f.send(device_died(1, "again"));
    f.system.deliver_all();
    f.system.advance(100us);
  }
  CHECK(f.books.records.size() >= 19'980);
  CHECK(f.books.batches.size() <= 2'050);
}

TEST_CASE("journal: no batch is larger than its limit") {
  journal_options opts;
  opts.batch_records_max = 3;
  fixture f{journal_sync::never, opts};
  for (auto& record : whole_operation(7, 1))
    f.send(record);
  f.system.deliver_all();
  CHECK(f.books.batches == std::vector<size_t>{3, 3});
  f.system.advance(1ms);
  CHECK(f.books.batches == std::vector<size_t>{3, 3, 1});
  CHECK(digest_of(f.books.records) == digest_of(whole_operation(7, 1)));
}

TEST_CASE("journal: answers a flush when all before it is written and synced") {
  fixture f;
  for (auto& record : whole_operation(7, 1))
    f.send(record);
  auto response = f.flush();
  CHECK(response.success());
  CHECK(response.error().empty());
  CHECK(response.records() == 7);
  CHECK(f.books.flushes == 1);
  f.system.stop(f.actor);
  CHECK(f.books.flushes == 1); // nothing was left to do
}

TEST_CASE("journal: syncs once an interval while there is something to sync") {
  journal_options opts;
  opts.sync_interval = 100ms;
  fixture f{journal_sync::interval, opts};
  f.system.advance(1s);
  CHECK(f.books.flushes == 0);
  f.send(device_died(1, "a"));
  f.system.deliver_all();
  f.system.advance(1ms);
  f.system.advance(59ms);
  f.send(device_died(2, "b"));
  f.system.deliver_all();
  f.system.advance(1ms);
  CHECK(f.books.flushes == 0);
  CHECK(f.books.records.size() == 2);
  f.system.advance(39ms);
  CHECK(f.books.flushes == 1);
  f.system.advance(1s);
  CHECK(f.books.flushes == 1);
  f.send(device_died(3, "c"));
  f.system.deliver_all();
  CHECK(f.flush().success());
  CHECK(f.books.flushes == 2);
  f.system.advance(1s); // what was planned finds nothing to do
  CHECK(f.books.flushes == 2);
  f.send(device_died(4, "d"));
  f.system.deliver_all();
  f.system.advance(1ms);
  f.system.advance(99ms);
  CHECK(f.books.flushes == 3);
}

TEST_CASE("journal: survives a failing disk, says so, and loses nothing within its limit") {
  journal_options opts;
  opts.queue_records_max = 5;
  opts.sync_interval = 100ms;
  fixture f{journal_sync::interval, opts};
  f.books.append_error = make_error(errc::io_error, "no space left");
  for (uint64_t device = 1; device <= 7; ++device)
    f.send(device_died(device, "x"));
  f.system.deliver_all();
  auto response = f.flush();
  CHECK(!response.success());
  CHECK(response.records() == 0);
  CHECK(response.error() == "2 records were lost, since 5 were waiting to be written: no space left");
  CHECK(f.flush().error() == "no space left");
  f.books.append_error = caf::none;
  f.system.advance(100ms); // tries again by itself
  CHECK(f.books.records.size() == 5);
  response = f.flush();
  CHECK(response.success());
  CHECK(response.records() == 5);
  f.books.flush_error = make_error(errc::io_error, "disk on fire");
  f.send(device_died(9, "x"));
  response = f.flush();
  CHECK(!response.success());
  CHECK(response.error() == "disk on fire");
  CHECK(response.records() == 6);
  f.books.flush_error = caf::none;
  CHECK(f.flush().success());
}

TEST_CASE("journal: the tail includes what has just been sent") {
  journal_options opts;
  opts.tail_records_max = 3;
  fixture f{journal_sync::never, opts};
  for (uint64_t device = 1; device <= 5; ++device)
    f.send(device_died(device, "x"));
  auto tail = [&](uint32_t count) {
    proto::JournalTailRequest request;
    request.set_records_max(count);
    std::vector<uint64_t> devices;
    auto response = f.system.ask<proto::JournalTailResponse>(f.actor, request);
    REQUIRE(response);
    CHECK(response->error().empty());
    for (auto& record : response->records())
      devices.push_back(record.device_died().device_id());
    return devices;
  };
  CHECK(tail(2) == std::vector<uint64_t>{4, 5});
  CHECK(tail(100) == std::vector<uint64_t>{3, 4, 5});
  CHECK(tail(0).empty());
}

TEST_CASE("journal: a client reads it from an index on, and learns what is not durable yet") {
  fixture f{journal_sync::interval};
  for (uint64_t device = 1; device <= 5; ++device)
    f.send(device_died(device, "x"));
  proto::JournalTailRequest request;
  request.set_records_max(2);
  request.set_forward(true);
  request.set_after(1);
  auto page = f.system.ask<proto::JournalTailResponse>(f.actor, request);
  REQUIRE(page);
  CHECK(page->error().empty());
  CHECK(std::vector<uint64_t>(page->indices().begin(), page->indices().end()) == std::vector<uint64_t>{2, 3});
  CHECK(page->records(0).device_died().device_id() == 2);
  CHECK(page->last_index() == 5);
  CHECK(page->unsynced() == 5);
  CHECK(f.flush().success());
  request.set_after(page->searched_last());
  page = f.system.ask<proto::JournalTailResponse>(f.actor, request);
  REQUIRE(page);
  CHECK(page->indices(0) == 4);
  CHECK(page->unsynced() == 0);
  request.set_kind("nonsense");
  page = f.system.ask<proto::JournalTailResponse>(f.actor, request);
  REQUIRE(page);
  CHECK(page->code() == static_cast<uint32_t>(errc::invalid_argument));
}

TEST_CASE("journal: an exit message does not overtake records") {
  fixture f;
  for (auto& record : whole_operation(7, 1))
    f.send(record);
  f.system.self->send_exit(f.actor, caf::exit_reason::user_shutdown);
  f.system.self->send_exit(f.actor, caf::exit_reason::user_shutdown);
  auto watched = false;
  f.system.self->monitor(f.actor);
  f.system.deliver_all();
  f.system.self->receive([&](caf::down_msg& down) { watched = down.reason == caf::exit_reason::user_shutdown; });
  CHECK(watched);
  CHECK(f.books.records.size() == 7);
  CHECK(f.books.flushes >= 1);
}

TEST_CASE("journal: whatever the order of sends, ticks and flushes, records stay in order and none is lost") {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    journal_options opts;
    opts.batch_records_max = 1 + random() % 5;
    opts.sync_interval = 10ms;
    fixture f{journal_sync::interval, opts};
    uint64_t sent = 0;
    for (auto action = 0; action < 60; ++action) {
      switch (random() % 6) {
        case 0: CHECK(f.flush().records() == sent); break;
        case 1: f.system.advance(std::chrono::milliseconds{random() % 15}); break;
        case 2: f.system.scheduler.try_run_once(); break;
        case 3: // the disk fails for a while
          f.books.append_error = make_error(errc::io_error, "full");
          f.send(device_died(++sent, "x"));
          f.system.advance(std::chrono::milliseconds{random() % 25});
          f.books.append_error = caf::none;
          break;
        default: f.send(device_died(++sent, "x"));
      }
    }
    CHECK(f.flush().success());
    REQUIRE(f.books.records.size() == sent);
    for (uint64_t i = 0; i < sent; ++i)
      CHECK(f.books.records[i].device_died().device_id() == i + 1);
  }
}

TEST_CASE(
  "journal: records that it cannot write at its end are tried once, for long if need be, then reported as lost") {
  journal_options opts;
  opts.queue_records_max = 5;
  auto health = opts.health;
  fixture f{journal_sync::never, opts};
  f.books.append_error = make_error(errc::io_error, "full");
  for (uint64_t device = 1; device <= 7; ++device)
    f.send(device_died(device, "x"));
  f.system.deliver_all();
  f.system.advance(1ms);
  CHECK(health->records_lost() == 2); // the queue has room for five
  CHECK(render(health->trouble())
        == "the journal lacks 7 records (2 lost, 5 records wait in memory), and cannot be written: full");
  auto before = f.books.attempts;
  f.system.stop(f.actor);
  CHECK(f.books.attempts == before + 1);
  CHECK(health->records_lost() == 7);
}

TEST_CASE("journal: on a thread of its own, what it reports durable is on disk") {
  temporary_directory dir;
  {
    deterministic_system::config cfg;
    cfg.set("scheduler.policy", caf::atom("stealing"));
    cfg.set("scheduler.max-threads", 2);
    caf::actor_system sys{cfg};
    journal_store::options store;
    store.dir = dir.path();
    auto opened = journal_store::open(store);
    REQUIRE(opened);
    journal_options opts;
    opts.store = std::move(*opened);
    auto actor = sys.spawn<caf::detached>(journal, std::move(opts));
    caf::scoped_actor self{sys};
    for (uint64_t sequence = 1; sequence <= 100; ++sequence)
      for (auto& record : whole_operation(7, sequence))
        self->send(actor, record);
    self->request(actor, 30s, proto::JournalFlushRequest{})
      .receive([](const proto::JournalFlushResponse& response) { CHECK(response.success()); },
               [](const caf::error& err) { FAIL(render(err)); });
    auto reader = journal_store::open_read_only(dir.path());
    REQUIRE(reader);
    CHECK((*reader)->read()->size() == 700);
    self->send(actor, device_died(1, "last words"));
    self->send_exit(actor, caf::exit_reason::user_shutdown);
  }
  auto reader = journal_store::open_read_only(dir.path());
  REQUIRE(reader);
  CHECK((*reader)->tail(1)->at(0).device_died().cause() == "last words");
}
