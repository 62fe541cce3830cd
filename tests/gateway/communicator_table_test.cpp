#include "gateway/dialects/communicator_table.hpp"
#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::gateway;

namespace {

using time_point = course_communicator::time_point;

gpu_sim::DeviceMetadata member_device(uint64_t id) {
  gpu_sim::DeviceMetadata result;
  result.mutable_deviceid()->set_value(id);
  result.mutable_minmemaddr()->set_value(id << 40);
  result.mutable_maxmemaddr()->set_value((id << 40) + 64);
  return result;
}

gpu_sim::CommInitResponse made_of(uint64_t id, const std::vector<uint64_t>& devices) {
  gpu_sim::CommInitResponse result;
  result.set_commid(id);
  for (auto x : devices)
    *result.add_devices() = member_device(x);
  return result;
}

using pairs = std::vector<std::pair<uint64_t, uint64_t>>;

/// Which devices spares have replaced.
pairs update(course_communicator& x, uint64_t epoch, const std::vector<uint64_t>& devices) {
  pairs result;
  for (auto& [lost, spare] : x.update(epoch, made_of(1, devices).devices()))
    result.emplace_back(lost.value, spare.deviceid().value());
  return result;
}

/// First rank and present device of each member.
pairs members_of(const course_communicator& x) {
  pairs result;
  for (auto& member : x.members())
    result.emplace_back(member.first_rank, member.present.device.value);
  return result;
}

} // namespace

TEST_CASE("course communicator: after a loss the others keep the ranks that clients know") {
  course_communicator x{made_of(1, {4, 5, 6, 7})};
  CHECK(update(x, 1, {4, 5, 6, 7}).empty());
  CHECK(update(x, 2, {4, 6, 7}).empty());
  CHECK(members_of(x) == pairs{{0, 4}, {2, 6}, {3, 7}});
  CHECK(*x.present_rank(2) == 1);
  CHECK(code_of(x.present_rank(1).error()) == errc::device_lost);
  CHECK(code_of(x.present_rank(4).error()) == errc::invalid_argument);
  CHECK(x.rank_of(device_id{7}) == 2);
  CHECK_FALSE(x.rank_of(device_id{5}));
  CHECK(x.first_size() == 4);
}

TEST_CASE("course communicator: a spare has the rank of the device that it replaces") {
  course_communicator x{made_of(1, {4, 5, 6})};
  CHECK(update(x, 2, {4, 9, 6}) == pairs{{5, 9}});
  CHECK(members_of(x) == pairs{{0, 4}, {1, 9}, {2, 6}});
  CHECK(x.rank_of(device_id{9}) == 1);
  CHECK(x.rank_of(device_id{5}) == 1); // as the client knows it
}

TEST_CASE("course communicator: losses and replacements at once") {
  course_communicator x{made_of(1, {1, 2, 3, 4})};
  CHECK(update(x, 5, {9, 4}) == pairs{{1, 9}});
  CHECK(members_of(x) == pairs{{0, 9}, {3, 4}});
}

TEST_CASE("course communicator: an older epoch changes nothing") {
  course_communicator x{made_of(1, {1, 2})};
  update(x, 3, {1});
  update(x, 2, {1, 2});
  CHECK(members_of(x) == pairs{{0, 1}});
}

TEST_CASE("course communicator: another communicator of the remaining devices") {
  course_communicator x{made_of(1, {1, 2, 3})};
  update(x, 4, {1, 2, 3});
  x.moved_to(made_of(8, {1, 3}));
  CHECK(x.now() == communicator_id{8});
  CHECK(members_of(x) == pairs{{0, 1}, {2, 3}});
  update(x, 2, {3});
  CHECK(members_of(x) == pairs{{2, 3}});
}

TEST_CASE("communicator table: what was destroyed is unknown, with the reason") {
  communicator_table table;
  const time_point start{};
  CHECK(table.add(made_of(7, {1}), start) == 7);
  CHECK(*table.find(7) != nullptr);
  table.remove(7, communicator_table::end::expired);
  auto gone = table.find(7);
  CHECK(code_of(gone.error()) == errc::unknown_communicator);
  CHECK(render(gone.error()) == "communicator 7 was not used for the time of idle-limit, and was destroyed");
  CHECK(render(table.find(8).error()) == "communicator 8 was not made by CommInit at this address");
  CHECK_FALSE(table.is_finalized(7));
  table.add(made_of(9, {1}), start);
  table.remove(9, communicator_table::end::finalized);
  CHECK(table.is_finalized(9));
}

TEST_CASE("communicator table: idle ones, and the latest of a device") {
  communicator_table table;
  const time_point start{};
  table.add(made_of(1, {1, 2}), start);
  table.add(made_of(2, {2, 3}), start + std::chrono::seconds{5});
  CHECK(table.idle_since(start + std::chrono::seconds{1}) == std::vector<uint64_t>{1});
  CHECK(table.idle_since(start).empty());
  CHECK(table.latest_of(device_id{2})->now() == communicator_id{2});
  CHECK(table.latest_of(device_id{1})->now() == communicator_id{1});
  CHECK(table.latest_of(device_id{4}) == nullptr);
}
