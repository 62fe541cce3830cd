#include "runtime/health/traffic.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

struct recorded_traffic {
  traffic of;
  traffic::time_point start = traffic::time_point{} + 1h;

  void say(uint64_t device, uint64_t sequence, uint64_t bytes, traffic::time_point when, uint64_t epoch = 1) {
    google::protobuf::RepeatedPtrField<proto::RouteBytes> received;
    auto& row = *received.Add();
    row.set_route("memory");
    row.set_bytes(bytes);
    of.heard(device_id{device}, epoch_number{epoch}, sequence_number{sequence}, received, when);
  }
  uint64_t bytes() const { return of.rows(start).at(0).bytes; }
};

} // namespace

TEST_CASE("traffic: what a rank says again of one attempt counts once, whatever overtakes it") {
  recorded_traffic x;
  x.say(1, 1, 100, x.start);
  x.say(1, 1, 250, x.start);
  CHECK(x.bytes() == 250);
  x.say(1, 1, 100, x.start); // an older word
  CHECK(x.bytes() == 250);
  x.say(2, 1, 30, x.start); // another rank
  CHECK(x.bytes() == 280);
  x.say(1, 2, 100, x.start); // the next operation begins at 0
  CHECK(x.bytes() == 380);
  x.say(1, 1, 900, x.start); // late, of the one before
  CHECK(x.bytes() == 380);
  x.say(1, 2, 40, x.start, 2); // it runs again in a new epoch
  CHECK(x.bytes() == 420);
}

TEST_CASE("traffic: a rate is of the last five seconds, and forgotten when traffic stops") {
  recorded_traffic x;
  CHECK(x.of.rows(x.start).empty());
  x.of.moved("joint", 5000, x.start);
  x.of.moved("messages", 1000, x.start);
  x.of.moved("joint", 5000, x.start + 4s);
  auto rows = x.of.rows(x.start + 4s);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].route == "joint");
  CHECK(rows[0].bytes == 10'000);
  CHECK(rows[0].bytes_per_s == 2000);
  CHECK(rows[1].bytes_per_s == 200);
  CHECK(x.of.rows(x.start + 6s).at(0).bytes_per_s == 1000);
  CHECK(x.of.rows(x.start + 60s).at(0).bytes_per_s == 0);
  CHECK(x.of.rows(x.start + 60s).at(0).bytes == 10'000);
}
