#include "runtime/journal/queries/journal_page.hpp"

#include "messages/errc.hpp"
#include "runtime/journal/journal_store.hpp"
#include "tests/support/records.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// Records 1 to 100: each tenth is the death of a device whose id is the record's index, the others start operations.
/// Records 1 to 20 are no longer kept.
std::unique_ptr<journal_store> hundred_records() {
  journal_store::options opts;
  opts.retain_records = 80;
  auto journal = make_memory_journal(opts);
  for (uint64_t i = 1; i <= 100; ++i) {
    auto record = i % 10 == 0 ? device_died(i, "x") : operation_started(7, i);
    REQUIRE(!journal->append({&record, 1}));
  }
  return journal;
}

proto::JournalTailRequest request_of(uint32_t records_max) {
  proto::JournalTailRequest x;
  x.set_records_max(records_max);
  return x;
}

std::vector<uint64_t> indices_of(const caf::expected<proto::JournalTailResponse>& page) {
  REQUIRE(page);
  CHECK(page->indices_size() == page->records_size());
  return {page->indices().begin(), page->indices().end()};
}

using index_list = std::vector<uint64_t>;

} // namespace

TEST_CASE("journal page: the latest records, and those before them") {
  const auto journal = hundred_records();
  auto x = request_of(3);
  auto page = journal_page(*journal, x);
  CHECK(indices_of(page) == index_list{98, 99, 100});
  CHECK(page->first_index() == 21);
  CHECK(page->last_index() == 100);
  x.set_before(page->searched_first());
  CHECK(indices_of(journal_page(*journal, x)) == index_list{95, 96, 97});
  x.set_before(23);
  page = journal_page(*journal, x);
  CHECK(indices_of(page) == index_list{21, 22});
  CHECK(page->searched_first() == page->first_index());
  x.set_before(21);
  page = journal_page(*journal, x);
  CHECK(indices_of(page).empty());
  CHECK(page->searched_last() == 0);
}

TEST_CASE("journal page: forward from an index on, until there is none") {
  const auto journal = hundred_records();
  auto x = request_of(30);
  x.set_forward(true);
  uint64_t count = 0;
  for (;;) {
    const auto page = journal_page(*journal, x);
    REQUIRE(page);
    if (page->searched_last() == 0)
      break;
    CHECK(page->indices(0) == std::max<uint64_t>(x.after() + 1, 21));
    count += static_cast<uint64_t>(page->records_size());
    x.set_after(page->searched_last());
  }
  CHECK(count == 80);
}

TEST_CASE("journal page: filters, and a search that its limit cuts into several") {
  const auto journal = hundred_records();
  journal_page_limits limits;
  limits.searched_max = 25;
  auto x = request_of(10);
  x.set_kind("device");
  auto page = journal_page(*journal, x, limits);
  CHECK(indices_of(page) == index_list{80, 90, 100});
  CHECK(page->searched_first() == 76);
  x.set_before(page->searched_first());
  CHECK(indices_of(journal_page(*journal, x, limits)) == index_list{60, 70});
  x.clear_before();
  x.set_forward(true);
  page = journal_page(*journal, x, limits);
  CHECK(indices_of(page) == index_list{30, 40});
  CHECK(page->searched_last() == 45);
  x = request_of(1);
  x.set_kind("device");
  page = journal_page(*journal, x, limits);
  CHECK(indices_of(page) == index_list{100});
  CHECK(page->searched_first() == 91);
  x = request_of(10);
  x.set_device_id(50);
  CHECK(indices_of(journal_page(*journal, x)) == index_list{50});
  x = request_of(2);
  x.set_comm_id(7);
  CHECK(indices_of(journal_page(*journal, x)) == index_list{98, 99});
  x.set_comm_id(8);
  CHECK(indices_of(journal_page(*journal, x)).empty());
}

TEST_CASE("journal page: an answer has a limit in bytes, but at least one record") {
  const auto journal = hundred_records();
  journal_page_limits limits;
  limits.bytes_max = 1;
  auto x = request_of(50);
  auto page = journal_page(*journal, x, limits);
  CHECK(indices_of(page) == index_list{100});
  CHECK(page->searched_first() == 100);
  x.set_forward(true);
  page = journal_page(*journal, x, limits);
  CHECK(indices_of(page) == index_list{21});
  CHECK(page->searched_last() == 21);
}

TEST_CASE("journal page: an unknown kind is refused, and no records are an empty page") {
  const auto journal = hundred_records();
  auto x = request_of(5);
  x.set_kind("devices");
  const auto refused = journal_page(*journal, x);
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::invalid_argument);
  CHECK(indices_of(journal_page(*journal, request_of(0))).empty());
  CHECK(indices_of(journal_page(*make_memory_journal({}), request_of(5))).empty());
}
