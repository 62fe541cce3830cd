#include "runtime/text/pages/quantity_column.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace ringmaster;

TEST_CASE("quantity column: the largest number determines the unit, the smallest one the decimals") {
  const std::vector<double> times{0.077852, 0.69695, 0};
  const quantity_column in_ms{times, "s"};
  CHECK(in_ms.unit() == "ms");
  CHECK(in_ms.text(times[0]) == "77.85");
  CHECK(in_ms.text(times[1]) == "696.95");
  CHECK(in_ms.text(times[2]) == "0.00");
  const std::vector<double> memory{1047656816640.0, 8e10};
  const quantity_column in_tb{memory, "bytes"};
  CHECK(in_tb.unit() == "TB");
  CHECK(in_tb.text(memory[0]) == "1.0477");
  CHECK(in_tb.text(memory[1]) == "0.0800"); // four behind the point at most
}

TEST_CASE("quantity column: counts have no decimals, and other units are not abbreviated") {
  CHECK(quantity_text(339738624, "elements") == "339.7 M elements");
  CHECK(quantity_text(12, "elements") == "12 elements");
  CHECK(quantity_text(999, "bytes") == "999 bytes");
  CHECK(quantity_text(76e9, "bytes") == "76.00 GB");
  CHECK(quantity_text(16.5, "units") == "16.50 units");
  CHECK(quantity_text(123, "s") == "123.0 s");
  CHECK(quantity_text(3e-6, "s") == "3.000 us");
  CHECK(quantity_text(0, "s") == "0 s");
  CHECK(quantity_column{{}, "s"}.text(0) == "0");
}
