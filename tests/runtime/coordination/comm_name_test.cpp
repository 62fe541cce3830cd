#include "runtime/coordination/join_checks.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("comm name: one line of 64 bytes; of others' words what can be one") {
  CHECK(is_comm_name(""));
  CHECK(is_comm_name(std::string(64, 'x')));
  CHECK(!is_comm_name(std::string(65, 'x')));
  CHECK(!is_comm_name("two\nlines"));
  CHECK(as_comm_name("world of job 7") == "world of job 7");
  CHECK(as_comm_name("two\nlines\x7f") == "twolines");
  CHECK(as_comm_name(std::string(100, 'x')) == std::string(64, 'x'));
  CHECK(as_comm_name(std::string(63, 'x') + "\u00e4") == std::string(63, 'x')); // no half a character
  CHECK(as_comm_name(std::string(62, 'x') + "\u00e4b") == std::string(62, 'x') + "\u00e4");
}
