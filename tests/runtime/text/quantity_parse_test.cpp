// Sizes, durations and bandwidths as people write them, and durations as they are shown.
#include "runtime/text/quantity_parse.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("quantity parse: reads common spellings of quantities") {
  CHECK(*parse_bytes("4096") == 4096);
  CHECK(*parse_bytes("64K") == 65536);
  CHECK(*parse_bytes("64KiB") == 65536);
  CHECK(*parse_bytes("64KB") == 64'000);
  for (auto text : {"64k", "64Ki", "64kib", "64KIB", "64Kib", "64 kiB"})
    CHECK_MESSAGE(*parse_bytes(text) == 65536, text);
  CHECK(*parse_bytes("64kb") == 64'000);
  CHECK(*parse_bytes("2m") == 2 << 20);
  CHECK(*parse_bytes("1GB") == 1'000'000'000);
  CHECK(*parse_bytes("8B") == 8);
  CHECK(*parse_bytes("64K", UINT64_MAX, 65536) == 65536);
  CHECK(render(parse_bytes("63K", UINT64_MAX, 65536).error()) == "\"63K\" is not at least 64 KiB");
  CHECK(*parse_duration_ps("5us") == 5'000'000);
  CHECK(*parse_duration_ps("1.5 ms") == 1'500'000'000);
  CHECK(*parse_duration_ps("0") == 0);
  CHECK(*parse_bandwidth("50GB/s") == 50e9);
  CHECK(*parse_bandwidth("400Gbit/s") == 50e9);
  CHECK(*parse_bandwidth("400Gbps") == 50e9);
  CHECK(*parse_bandwidth("1GiB/s") == 1073741824.0);
  for (auto text : {"", "-1", "1X", "1KX", "K", "1e9999", "nan", "99999999P", "1iB", "1ib", "1kbi", "1.5MiB"})
    CHECK(!parse_bytes(text));
  for (auto text : {"", "5", "-5us", "5 hours", "5000000s"})
    CHECK(!parse_duration_ps(text));
  for (auto text : {"", "50", "50GB", "0GB/s", "50XB/s", "50G/s"})
    CHECK(!parse_bandwidth(text));
  CHECK(render(parse_bandwidth("50").error())
        == "\"50\" is not a bandwidth such as 50GB/s, 12.5GiB/s, 400Gbit/s or 400Gbps");
}

TEST_CASE("quantity parse: a duration in seconds may be years") {
  for (auto [text, seconds] : {std::pair{"50000h", 1.8e8},
                               {"30s", 30.0},
                               {"5min", 300.0},
                               {"1.5h", 5400.0},
                               {"2d", 172'800.0},
                               {"500ms", 0.5},
                               {"20us", 20e-6},
                               {"0", 0.0},
                               {"0 s", 0.0},
                               {"365250d", 365'250 * 86400.0}}) {
    CAPTURE(text);
    auto parsed = parse_duration_s(text);
    REQUIRE(parsed);
    CHECK(*parsed == doctest::Approx(seconds).epsilon(1e-14));
  }
  CHECK(*parse_duration_ps("1.5h") == 5'400'000'000'000'000);
  CHECK(*parse_duration_ps("2d") == 172'800'000'000'000'000);
}

TEST_CASE("quantity parse: a wrong duration in seconds is refused with an example of a right one") {
  for (auto text : {"", "5", "-5s", "5 hours", "h", "1e3s", "nan s", "inf s", "5s5", "5 min ", "365251d", "5y"}) {
    CAPTURE(text);
    CHECK(!parse_duration_s(text));
  }
  CHECK(render(parse_duration_s("5 minutes").error())
        == "\"5 minutes\" is not a duration such as 500ms, 30s, 5min, 1.5h, 2d or 50000h, of 1000 years at most");
}

TEST_CASE("quantity text: a long duration has a suitable unit") {
  CHECK(long_duration_text(0) == "0 ms");
  CHECK(long_duration_text(0.25) == "250 ms");
  CHECK(long_duration_text(30) == "30 s");
  CHECK(long_duration_text(817) == "13.6 min");
  CHECK(long_duration_text(11'135) == "3.09 h");
  CHECK(long_duration_text(86'400) == "24 h");
  CHECK(long_duration_text(54 * 86'400.0) == "54 d");
}

TEST_CASE("quantity parse: rates of operations have a unit") {
  CHECK(*parse_operation_rate("989 TFLOP/s") == 989e12);
  CHECK(*parse_operation_rate("2.5PFLOPS") == 2.5e15);
  CHECK(*parse_operation_rate("7FLOP/s") == 7);
  for (auto text : {"", "989", "989T", "0TFLOP/s", "-1TFLOP/s", "989 TiFLOP/s", "989 TFLOP", "TFLOP/s", "1e400TFLOP/s"})
    CHECK(!parse_operation_rate(text));
}
