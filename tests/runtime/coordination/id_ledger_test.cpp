#include "runtime/coordination/id_ledger.hpp"

#include "runtime/journal/journal_store.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("id_ledger: gives every device's id once, the one that is wanted where it can, and none of an earlier run") {
  proto::JournalState known;
  known.set_node_id(3);
  known.set_device_id(10);
  id_ledger ids{known};
  CHECK(ids.new_device({}) == device_id{11});
  CHECK(ids.new_device(device_id{20}) == device_id{20});
  CHECK(ids.new_device(device_id{20}) == device_id{21});
  CHECK(ids.new_device(device_id{15}) == device_id{15}); // a gap
  CHECK(ids.new_device(device_id{5}) == device_id{22});  // of an earlier run
  CHECK(ids.new_device(device_id{15}) == device_id{23});
  ids.taken(device_id{30});
  CHECK(ids.new_device({}) == device_id{31});
  CHECK(ids.new_node() == node_id{4});
  CHECK(ids.new_communicator() == communicator_id{1});
  CHECK(ids.was_given(communicator_id{1}));
  CHECK_FALSE(ids.was_given(communicator_id{2}));
  CHECK_FALSE(ids.was_given(communicator_id{}));
}

TEST_CASE("id_ledger: its marks are ahead of what is given, whenever the process ends") {
  auto in_journal = empty_journal();
  id_ledger ids{in_journal};
  auto marks = 0;
  for (uint64_t i = 0; i < 3 * id_ledger::reserve; ++i) {
    if (auto mark = ids.mark()) {
      advance(in_journal, *mark);
      ++marks;
    }
    CHECK(ids.new_communicator().value + id_ledger::reserve / 2 <= in_journal.comm_id() + 1);
    ids.new_device({});
  }
  CHECK(marks == 6); // one in half a reserve
  id_ledger killed{in_journal};
  CHECK(killed.new_communicator().value > 3 * id_ledger::reserve);
  CHECK(killed.new_device(device_id{5}).value > 3 * id_ledger::reserve);
  CHECK(killed.new_node().value > id_ledger::reserve);
  advance(in_journal, ids.last_mark());
  id_ledger ended_in_order{in_journal};
  CHECK(ended_in_order.new_communicator().value == 3 * id_ledger::reserve + 1);
  CHECK(ended_in_order.new_node() == node_id{1});
}
