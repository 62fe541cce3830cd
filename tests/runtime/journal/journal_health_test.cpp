#include "runtime/journal/journal_health.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("journal health: reports nothing without a problem") {
  journal_health x;
  CHECK_FALSE(x.trouble());
  x.failing(make_error(errc::io_error, "disk full"));
  CHECK(render(x.trouble()) == "the journal cannot be written: disk full");
  x.failing({});
  CHECK_FALSE(x.trouble()); // what waited has been written
  CHECK(x.records_lost() == 0);
}

TEST_CASE("journal health: records that wait in memory are counted with those that are lost") {
  journal_health x;
  x.failing(make_error(errc::io_error, "disk full"));
  x.waiting(1);
  CHECK(render(x.trouble()) == "the journal cannot be written, and 1 record waits in memory: disk full");
  x.lost(2);
  x.waiting(40);
  CHECK(render(x.trouble())
        == "the journal lacks 42 records (2 lost, 40 records wait in memory), and cannot be written: disk full");
  CHECK(x.records_lost() == 2);
  x.failing({});
  x.waiting(0);
  CHECK(render(x.trouble()) == "the journal lacks 2 records, from a time when it could not be written: disk full");
}

TEST_CASE("journal health: lost records stay counted, with the reason") {
  journal_health x;
  x.failing(make_error(errc::io_error, "disk full"));
  x.lost(2);
  x.lost(1);
  CHECK(x.records_lost() == 3);
  CHECK(render(x.trouble()) == "the journal lacks 3 records, and cannot be written: disk full");
  x.failing({});
  CHECK(render(x.trouble()) == "the journal lacks 3 records, from a time when it could not be written: disk full");
}
