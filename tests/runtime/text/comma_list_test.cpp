#include "runtime/text/comma_list.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("comma_list: has all parts in order, including empty ones") {
  CHECK(comma_list("4") == std::vector<std::string_view>{"4"});
  CHECK(comma_list("a,bc,d") == std::vector<std::string_view>{"a", "bc", "d"});
  CHECK(comma_list(",a,,") == std::vector<std::string_view>{"", "a", "", ""});
  CHECK(comma_list("") == std::vector<std::string_view>{""});
}

TEST_CASE("comma_list: a long list is shortened, with the number of words left out") {
  CHECK(shortened_list({"a", "b", "c"}, 3) == "a, b, c");
  CHECK(shortened_list({"a", "b", "c", "d"}, 2) == "a, b, ... and 2 more");
}
