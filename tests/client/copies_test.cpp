// A copy between host and device goes in pieces, whatever the coordinator's process stands between.
#include "client/client.hpp"

#include "messages/errc.hpp"
#include "tests/client/coordinated.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t device_begin = 1u << 20, device_bytes = 8u << 20;

/// A device's memory, and what was asked of it.
struct memory_script {
  std::vector<std::byte> memory{device_bytes};
  std::vector<std::pair<uint64_t, uint64_t>> pieces; ///< Place in the memory and bytes, in the order of their coming.
  uint64_t refused_from = UINT64_MAX;                ///< An address.
  int64_t too_many = 0;                              ///< Bytes in an answer.
};

caf::behavior memory_double(caf::event_based_actor*, std::shared_ptr<memory_script> said) {
  return {[](const gpu_sim::DeviceId&, const gpu_sim::GetDeviceMetadataRequest&) {
            gpu_sim::GetDeviceMetadataResponse answer;
            answer.mutable_metadata()->mutable_minmemaddr()->set_value(device_begin);
            answer.mutable_metadata()->mutable_maxmemaddr()->set_value(device_begin + device_bytes);
            return answer;
          },
          [said](const gpu_sim::MemcpyRequest& x,
                 const byte_block& block) -> caf::result<gpu_sim::MemcpyResponse, byte_block> {
            auto in = x.has_hosttodevice();
            auto address = in ? x.hosttodevice().dstmemaddr().value() : x.devicetohost().srcmemaddr().value();
            auto bytes = in ? block.size() : x.devicetohost().numbytes();
            said->pieces.emplace_back(address - device_begin, bytes);
            gpu_sim::MemcpyResponse answer;
            if (address >= said->refused_from) {
              answer.set_error("the device was lost");
              answer.set_code(static_cast<uint32_t>(errc::device_lost));
              return {answer, byte_block{}};
            }
            auto place = said->memory.data() + (address - device_begin);
            if (in) {
              std::copy_n(block.data(), bytes, place);
              return {answer, byte_block{}};
            }
            std::vector<std::byte> data(place, place + bytes);
            data.resize(static_cast<size_t>(static_cast<int64_t>(bytes) + said->too_many));
            return {answer, byte_block::of(std::move(data))};
          }};
}

struct memory_of_a_device : coordinated<memory_script> {
  memory_of_a_device() : coordinated{memory_double} {}
  client host{system, coordinator, 10s};
};

byte_block counting(size_t bytes) {
  std::vector<uint32_t> values(bytes / 4);
  for (uint32_t i = 0; i < values.size(); ++i)
    values[i] = i * 2654435761u;
  return byte_block::of(std::move(values));
}

} // namespace

// Else no page of a device's memory would be made as a huge one.
TEST_CASE("copies: go in a piece for each huge page that they touch, and come back as they were") {
  constexpr uint64_t page = 2u << 20;
  for (uint64_t bytes : {uint64_t{0}, uint64_t{4}, page / 2, page - 64, page + 4, 7 * page / 2}) {
    CAPTURE(bytes);
    memory_of_a_device x;
    auto block = counting(bytes);
    CHECK(!x.host.copy_to_device(device_id{1}, device_begin + 64, block));
    CHECK(x.said->pieces.size() >= std::max<uint64_t>((64 + bytes + page - 1) / page, 1)); // more, if one is slow
    for (auto& [place, size] : x.said->pieces)
      CHECK(place % page + size <= page);
    auto back = x.host.copy_to_host(device_id{1}, device_begin + 64, bytes);
    REQUIRE(back);
    REQUIRE(back->size() == bytes);
    CHECK((bytes == 0 || std::memcmp(back->data(), block.data(), bytes) == 0));
  }
}

TEST_CASE("copies: what is beyond the device's memory is refused before a byte is sent") {
  memory_of_a_device x;
  auto problem = x.host.copy_to_device(device_id{1}, device_begin + (4u << 20), counting(6u << 20));
  CHECK(code_of(problem) == errc::out_of_range);
  CHECK(render(problem)
        == "device 0x1: address 0x500000 with 0x600000 bytes is not within its memory, which is [0x100000, 0x900000)");
  CHECK(x.host.copy_to_host(device_id{1}, 0, 4u << 20).error() == errc::out_of_range);
  CHECK(x.said->pieces.empty());
}

TEST_CASE("copies: one that fails on its way ends with the first reason, and sends no more") {
  memory_of_a_device x;
  x.said->refused_from = device_begin + (2u << 20);
  auto problem = x.host.copy_to_device(device_id{1}, device_begin, counting(8u << 20));
  CHECK(code_of(problem) == errc::device_lost);
  CHECK(x.said->pieces.size() == 3); // one that went well, and two that were under way
  x.said->refused_from = UINT64_MAX;
  CHECK(!x.host.copy_to_device(device_id{1}, device_begin,
                               counting(64))); // answers of different callers are not mixed up
}

TEST_CASE("copies: an answer of another size than was asked for is refused, not written") {
  memory_of_a_device x;
  for (int64_t too_many : {-1, 1}) {
    x.said->too_many = too_many;
    for (uint64_t bytes : {uint64_t{100}, uint64_t{3} << 20}) {
      auto found = x.host.copy_to_host(device_id{1}, device_begin, bytes);
      REQUIRE(!found);
      CHECK(code_of(found.error()) == errc::corrupt);
    }
  }
}
