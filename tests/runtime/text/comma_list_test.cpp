#include "runtime/text/comma_list.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("comma_list: parts in order, empty ones too") {
  CHECK(comma_list("4") == std::vector<std::string_view>{"4"});
  CHECK(comma_list("a,bc,d") == std::vector<std::string_view>{"a", "bc", "d"});
  CHECK(comma_list(",a,,") == std::vector<std::string_view>{"", "a", "", ""});
  CHECK(comma_list("") == std::vector<std::string_view>{""});
}
