#include "runtime/reduction/datatypes.hpp"

#include "runtime/reduction/reduction.hpp"

#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <string>

using namespace ringmaster;

TEST_CASE("datatypes: every number of the schema has a row with all properties") {
  for (int number = proto::DataType_MIN; number <= proto::DataType_MAX; ++number) {
    const auto type = static_cast<proto::DataType>(number);
    const auto* known = find_datatype(type);
    CAPTURE(number);
    REQUIRE(known != nullptr);
    CHECK(known->value == type);
    std::string name{known->name};
    for (auto& c : name)
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    CHECK(name == proto::DataType_Name(type));
    CHECK(known->is_float == (name.find("FLOAT") != std::string::npos));
    CHECK(*parse_datatype(known->name) == type);
    CHECK(size_of(type) == known->element_bytes);
    CHECK(known->kernels(instruction_set::baseline).element_bytes == known->element_bytes);
    const bool has_sum = known->operation(gpu_sim::SUM, instruction_set::baseline).pair != nullptr;
    CHECK(has_sum);
    CHECK(order_shows(type, gpu_sim::SUM) == known->is_float);
    CHECK(!order_shows(type, gpu_sim::MAX));
    CHECK(order_shows(type, gpu_sim::USER));
  }
  CHECK(datatypes().size() == static_cast<size_t>(proto::DataType_ARRAYSIZE));
}

TEST_CASE("datatypes: an unknown number is reported") {
  std::byte element[element_bytes_max];
  for (auto& x : datatypes()) {
    CAPTURE(x.name);
    CHECK(x.store(1, element));
    CHECK(x.store(0.5, element) == x.is_float);
    CHECK(!x.store(std::numeric_limits<double>::infinity(), element));
    CHECK(!x.store(std::nan(""), element));
    if (x.is_float)
      continue;
    CHECK(x.store(static_cast<double>(x.least), element));
    CHECK(!x.store(static_cast<double>(x.least) - std::ldexp(1, 20), element)); // more than a double rounds away
    CHECK(!x.store(std::ldexp(1, 64), element));
  }
}

TEST_CASE("datatypes: no row for a number that the schema does not have") {
  CHECK(find_datatype(static_cast<proto::DataType>(proto::DataType_MAX + 1)) == nullptr);
  CHECK(find_datatype(static_cast<proto::DataType>(-1)) == nullptr);
  CHECK(name_of(static_cast<proto::DataType>(-1)) == "unknown");
}
