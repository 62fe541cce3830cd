#include "runtime/health/progress_desk.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

constexpr progress_desk::key request{communicator_id{7}, 3};

proto::Progress from(uint64_t device, uint64_t number = 3) {
  proto::Progress result;
  result.set_comm_id(7);
  result.set_number(number);
  result.set_device_id(device);
  return result;
}

std::set<device_id> three() {
  return {device_id{1}, device_id{2}, device_id{3}};
}

} // namespace

TEST_CASE("progress_desk: reports once for all, when the last has spoken") {
  progress_desk desk;
  CHECK_FALSE(desk.ask(request, three()));
  CHECK_FALSE(desk.on_progress(from(2)));
  CHECK_FALSE(desk.on_progress(from(2))); // once more
  CHECK_FALSE(desk.on_progress(from(9))); // who was not asked
  CHECK_FALSE(desk.on_progress(from(1)));
  auto report = desk.on_progress(from(3));
  REQUIRE(report);
  CHECK(report->comm_id() == 7);
  REQUIRE(report->devices_size() == 3);
  CHECK(report->devices(0).device_id() == 2);
  CHECK_FALSE(desk.is_open(request));
  CHECK_FALSE(desk.on_limit(request));
}

TEST_CASE("progress_desk: a node of 256 devices says in one message what each of them does") {
  progress_desk desk;
  std::set<device_id> devices;
  for (uint64_t id = 1; id <= 256; ++id)
    devices.insert(device_id{id});
  desk.ask(request, devices);
  for (uint64_t id = 1; id < 256; ++id)
    CHECK_FALSE(desk.on_progress(from(id)));
  auto report = desk.on_progress(from(256));
  REQUIRE(report);
  CHECK(report->devices_size() == 256);
}

TEST_CASE("progress_desk: at the limit it reports those who have spoken, and then each that comes late") {
  progress_desk desk;
  desk.ask(request, three());
  desk.on_progress(from(2));
  auto report = desk.on_limit(request);
  REQUIRE(report);
  CHECK(report->devices_size() == 1);
  CHECK_FALSE(desk.on_limit(request));
  auto late = desk.on_progress(from(1));
  REQUIRE(late);
  REQUIRE(late->devices_size() == 1);
  CHECK(late->devices(0).device_id() == 1);
  CHECK(desk.is_open(request));
  desk.forget(request);
  CHECK_FALSE(desk.on_progress(from(3)));
}

TEST_CASE(
  "progress_desk: a node without any of the devices, or whose devices are all silent, still shows that it lives") {
  progress_desk desk;
  auto nobody = desk.ask(request, {});
  REQUIRE(nobody);
  CHECK(nobody->comm_id() == 7);
  CHECK(nobody->devices().empty());
  desk.ask(request, three());
  auto silent = desk.on_limit(request);
  REQUIRE(silent);
  CHECK(silent->devices().empty());
}

TEST_CASE("progress_desk: requests of one communicator and of several are kept apart") {
  progress_desk desk;
  progress_desk::key next{communicator_id{7}, 4}, other{communicator_id{8}, 3};
  for (auto key : {request, next, other})
    desk.ask(key, {device_id{1}});
  CHECK(desk.on_progress(from(1, 4)));
  CHECK_FALSE(desk.is_open(next));
  CHECK(desk.is_open(request));
  CHECK(desk.is_open(other));
}
