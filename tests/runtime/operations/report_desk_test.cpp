#include "runtime/operations/report_desk.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

constexpr communicator_id comm{7};
constexpr epoch_number first{1}, second{2};
const std::vector<device_id> two_devices{device_id{3}, device_id{5}};

shared_memory_arrival arrival(uint64_t device, uint64_t sequence, epoch_number epoch = first) {
  return {comm, epoch, sequence_number{sequence}, device_id{device}, nullptr};
}

proto::RankReport report(uint64_t device, uint64_t sequence, proto::RankReport::Phase phase,
                         epoch_number epoch = first) {
  proto::RankReport result;
  result.set_comm_id(comm.value);
  result.set_epoch(epoch.value);
  result.set_sequence(sequence);
  result.set_device_id(device);
  result.set_phase(phase);
  return result;
}

/// Devices, in the order of the reports.
std::vector<uint64_t> devices_of(const std::vector<proto::RankReport>& reports) {
  std::vector<uint64_t> result;
  for (auto& x : reports)
    result.push_back(x.device_id());
  return result;
}

using numbers = std::vector<uint64_t>;

constexpr auto finished = proto::RankReport::FINISHED, committed = proto::RankReport::COMMITTED,
               broken = proto::RankReport::BROKEN, interrupted = proto::RankReport::INTERRUPTED;

} // namespace

TEST_CASE("report_desk: all have come to an operation when the last has, to the one before the furthest") {
  report_desk desk;
  desk.expect(comm, first, two_devices);
  CHECK_FALSE(desk.on_arrival(arrival(3, 4)));
  auto news = desk.on_arrival(arrival(5, 2));
  REQUIRE(news);
  CHECK(news->communicator == comm);
  CHECK(news->epoch == first);
  CHECK(news->sequence == sequence_number{2});
  CHECK(news->devices == two_devices);
  CHECK(news->memories.size() == 2);
  CHECK_FALSE(desk.on_arrival(arrival(3, 6))); // the other is still at 2
  news = desk.on_arrival(arrival(5, 6));
  REQUIRE(news);
  CHECK(news->sequence == sequence_number{6});
}

TEST_CASE("report_desk: who came in an epoch that is gone has to come again") {
  report_desk desk;
  desk.expect(comm, first, two_devices);
  CHECK_FALSE(desk.on_arrival(arrival(3, 4)));
  desk.expect(comm, second, two_devices);
  CHECK_FALSE(desk.on_arrival(arrival(5, 4, first)));
  CHECK_FALSE(desk.on_arrival(arrival(5, 4, second)));
  CHECK(desk.on_arrival(arrival(3, 4, second)));
}

TEST_CASE("report_desk: what comes of an operation is said once for all ranks") {
  report_desk desk;
  desk.expect(comm, first, two_devices);
  for (auto phase : {finished, committed}) {
    CHECK(desk.on_report(report(3, 1, phase)).empty());
    CHECK(desk.on_report(report(3, 2, phase)).empty()); // another one's
    CHECK(devices_of(desk.on_report(report(5, 1, phase))) == numbers{3, 5});
    CHECK(devices_of(desk.on_report(report(5, 2, phase))) == numbers{3, 5});
  }
  CHECK(desk.stop(comm).empty());
}

TEST_CASE("report_desk: what broke or was stopped goes at once, behind what was gathered") {
  for (auto phase : {broken, interrupted}) {
    report_desk desk;
    desk.expect(comm, first, two_devices);
    CHECK(desk.on_report(report(5, 1, finished)).empty());
    CHECK(devices_of(desk.on_report(report(3, 1, phase))) == numbers{5, 3});
    CHECK(desk.stop(comm).empty());
  }
}

TEST_CASE("report_desk: what was gathered is not lost with the epoch") {
  report_desk desk;
  desk.expect(comm, first, two_devices);
  CHECK(desk.on_report(report(5, 1, committed)).empty());
  CHECK(devices_of(desk.stop(comm)) == numbers{5});
  CHECK(desk.stop(comm).empty());
  CHECK(devices_of(desk.on_report(report(3, 1, committed))) == numbers{3}); // a commit under way goes on
  CHECK(desk.stop(communicator_id{8}).empty());
}

TEST_CASE("report_desk: a report of an unknown communicator is passed on unchanged") {
  report_desk desk;
  CHECK(devices_of(desk.on_report(report(3, 1, finished))) == numbers{3});
  desk.expect(comm, second, two_devices);
  CHECK(devices_of(desk.on_report(report(3, 1, finished, first))) == numbers{3});
  CHECK_FALSE(desk.on_arrival({communicator_id{8}, first, sequence_number{1}, device_id{3}, nullptr}));
  desk.forget(comm);
  CHECK(devices_of(desk.on_report(report(3, 1, finished, second))) == numbers{3});
}

TEST_CASE("report_desk: a rank that is alone in its process waits for no other") {
  report_desk desk;
  desk.expect(comm, first, {device_id{3}});
  CHECK(desk.on_arrival(arrival(3, 1)));
  CHECK(devices_of(desk.on_report(report(3, 2, finished))) == numbers{3});
}
