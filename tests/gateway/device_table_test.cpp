#include "gateway/dialects/device_table.hpp"
#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::gateway;

namespace {

constexpr uint64_t memory_bytes = 0x10000;

gpu_sim::DeviceMetadata device_number(uint64_t id) {
  gpu_sim::DeviceMetadata result;
  result.mutable_deviceid()->set_value(id);
  result.mutable_minmemaddr()->set_value(id << 40);
  result.mutable_maxmemaddr()->set_value((id << 40) + memory_bytes);
  return result;
}

proto::ClusterInfo cluster_of(std::vector<uint64_t> ids) {
  proto::ClusterInfo result;
  for (auto id : ids)
    *result.add_devices()->mutable_metadata() = device_number(id);
  return result;
}

dialect with_window(uint64_t bytes) {
  dialect result;
  result.addresses = dialect::window{0x1000, bytes};
  return result;
}

dialect numbered_from(uint64_t first) {
  dialect result;
  result.first_device_id = first;
  return result;
}

} // namespace

TEST_CASE("device table: in the lab's form ids and addresses are those of the cluster") {
  const dialect lab;
  device_table table{lab, {}};
  table.learn(device_number(3));
  CHECK_FALSE(table.has_places());
  CHECK(*table.with_id(3) == device_id{3});
  CHECK(*table.address(device_id{3}, 0x1234, 8) == 0x1234);
  CHECK(table.seen_memory(cluster_memory::of(device_number(3))).min == uint64_t{3} << 40);
}

TEST_CASE("device table: a window of addresses is the beginning of a device's memory") {
  const auto form = with_window(0x100);
  device_table table{form, {}};
  table.learn(device_number(2));
  const device_id two{2};
  CHECK(*table.address(two, 0x1000, 0x100) == uint64_t{2} << 40);
  CHECK(*table.address(two, 0x1080, 1) == (uint64_t{2} << 40) + 0x80);
  CHECK(*table.address(two, 0x1100, 0) == (uint64_t{2} << 40) + 0x100);
  CHECK(code_of(table.address(two, 0xfff, 1).error()) == errc::out_of_range);
  CHECK(code_of(table.address(two, 0x1000, 0x101).error()) == errc::out_of_range);
  CHECK(code_of(table.address(two, UINT64_MAX, UINT64_MAX).error()) == errc::out_of_range);
  CHECK(code_of(table.address(device_id{9}, 0x1000, 1).error()) == errc::unknown_device);
}

TEST_CASE("device table: a window does not exceed the device's memory") {
  const auto form = with_window(1 << 30);
  device_table table{form, {}};
  table.learn(device_number(2));
  CHECK(table.seen_memory(cluster_memory::of(device_number(2))).max == 0x1000 + memory_bytes);
  CHECK(code_of(table.address(device_id{2}, 0x1000, memory_bytes + 1).error()) == errc::out_of_range);
}

TEST_CASE("device table: numbered devices keep their numbers, and a lost one's goes to another") {
  const auto form = numbered_from(1);
  device_table table{form, {}};
  table.update(cluster_of({10, 11, 12}));
  CHECK(*table.with_id(1) == device_id{10});
  CHECK(*table.with_id(3) == device_id{12});
  CHECK(table.id_for_clients(device_id{11}) == 2);
  CHECK(render(table.with_id(4).error()) == "there is no device 4; their ids are 1 to 3");
  CHECK(code_of(table.with_id(0).error()) == errc::unknown_device);
  table.update(cluster_of({10, 12, 13}));
  CHECK(*table.with_id(2) == device_id{13});
  CHECK(table.id_for_clients(device_id{12}) == 3);
  table.update(cluster_of({10, 12}));
  CHECK(code_of(table.with_id(2).error()) == errc::unknown_device);
}

TEST_CASE("device table: devices with addresses are found by their ports") {
  const dialect lab;
  device_table table{lab, {{"127.0.0.1", 5003}, {"127.0.0.1", 5004}}};
  table.update(cluster_of({7, 8, 9}));
  CHECK(table.placed() == std::vector{device_id{7}, device_id{8}});
  CHECK(*table.at_place(1) == device_id{8});
  CHECK(*table.at_addresses({"localhost:5004", "gpu-1:5003"}) == std::vector{device_id{8}, device_id{7}});
  CHECK(code_of(table.at_addresses({"localhost:6000"}).error()) == errc::invalid_argument);
  CHECK(code_of(table.at_addresses({"localhost"}).error()) == errc::invalid_argument);
  table.listening_at({6001, 6002});
  CHECK(*table.at_addresses({"localhost:6002"}) == std::vector{device_id{8}});
  table.update(cluster_of({7}));
  CHECK(render(table.at_place(1).error()) == "no device of the cluster is at 127.0.0.1:6002 at present");
}

TEST_CASE("device table: a spare stands for the device that it has replaced") {
  const dialect lab;
  device_table table{lab, {}};
  table.learn(device_number(1));
  table.replaced(device_id{1}, device_number(5));
  CHECK(*table.with_id(1) == device_id{5});
  CHECK(*table.address(device_id{5}, (uint64_t{1} << 40) + 0x40, 8) == (uint64_t{5} << 40) + 0x40);
  CHECK(*table.address(device_id{5}, (uint64_t{5} << 40) + 0x40, 8) == (uint64_t{5} << 40) + 0x40);
  table.replaced(device_id{5}, device_number(6));
  CHECK(*table.with_id(1) == device_id{6});
  CHECK(*table.address(device_id{6}, (uint64_t{1} << 40) + 0x40, 8) == (uint64_t{6} << 40) + 0x40);
  table.update(cluster_of({2, 3}));
  CHECK(*table.with_id(1) == device_id{1}); // the spare is lost as well: the cluster says how
}

TEST_CASE("device table: a spare takes the lost device's number") {
  const auto form = numbered_from(0);
  device_table table{form, {}};
  table.update(cluster_of({1, 2, 3}));
  table.replaced(device_id{1}, device_number(3));
  CHECK(*table.with_id(0) == device_id{3});
  CHECK(table.id_for_clients(device_id{3}) == 0);
  CHECK(code_of(table.with_id(2).error()) == errc::unknown_device);
}
