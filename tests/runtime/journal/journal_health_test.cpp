#include "runtime/journal/journal_health.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("journal health: nothing is said where nothing is amiss") {
  journal_health x;
  CHECK(x.trouble().empty());
  x.failing("disk full");
  CHECK(x.trouble() == "the journal cannot be written: disk full");
  x.failing("");
  CHECK(x.trouble().empty()); // what waited has been written
  CHECK(x.records_lost() == 0);
}

TEST_CASE("journal health: what was lost stays lost, with the reason") {
  journal_health x;
  x.failing("disk full");
  x.lost(2);
  x.lost(1);
  CHECK(x.records_lost() == 3);
  CHECK(x.trouble() == "the journal lacks 3 records, and cannot be written: disk full");
  x.failing("");
  CHECK(x.trouble() == "the journal lacks 3 records, from a time when it could not be written: disk full");
}
