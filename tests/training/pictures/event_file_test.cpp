#include "training/pictures/event_file.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <google/protobuf/unknown_field_set.h>

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::training;
using google::protobuf::UnknownFieldSet;
using ringmaster::test::temporary_directory;

namespace {

/// CRC-32C bit by bit, unlike the writer's.
uint32_t plain_crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool low = ((crc ^ static_cast<uint32_t>(static_cast<uint8_t>(byte) >> bit)) & 1) != 0;
      crc = (crc >> 1) ^ (low ? 0x82F63B78u : 0u);
    }
  return ~crc;
}

bool is_masked(uint32_t masked, std::string_view bytes) {
  const auto unrotated = masked - 0xa282ead8u;
  return ((unrotated >> 17) | (unrotated << 15)) == plain_crc32c(bytes);
}

/// The events of a file, read without the writer's code or schema.
std::vector<std::string> records_of(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  std::ostringstream whole;
  whole << in.rdbuf();
  const auto bytes = whole.str();
  std::vector<std::string> result;
  for (size_t at = 0; at < bytes.size();) {
    REQUIRE(at + 12 <= bytes.size());
    uint64_t length = 0;
    uint32_t checksum = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&checksum, bytes.data() + at + 8, 4);
    CHECK(is_masked(checksum, std::string_view{bytes}.substr(at, 8)));
    REQUIRE(at + 16 + length <= bytes.size());
    result.push_back(bytes.substr(at + 12, length));
    std::memcpy(&checksum, bytes.data() + at + 12 + length, 4);
    CHECK(is_masked(checksum, result.back()));
    at += 16 + length;
  }
  return result;
}

struct read_event {
  double wall_time = 0;
  uint64_t step = 0;
  std::string version;
  std::map<std::string, float> values;
};

/// By TensorFlow's field numbers: wall_time 1, step 2, file_version 3, summary 5 {value 1 {tag 1, simple_value 2}}.
read_event event_of(const std::string& record) {
  UnknownFieldSet fields;
  REQUIRE(fields.ParseFromString(record));
  read_event result;
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() == 1)
      result.wall_time = std::bit_cast<double>(field.fixed64());
    else if (field.number() == 2)
      result.step = field.varint();
    else if (field.number() == 3)
      result.version = field.length_delimited();
    else if (field.number() == 5) {
      UnknownFieldSet summary;
      REQUIRE(summary.ParseFromString(field.length_delimited()));
      for (int v = 0; v < summary.field_count(); ++v) {
        UnknownFieldSet value;
        REQUIRE(value.ParseFromString(summary.field(v).length_delimited()));
        REQUIRE(value.field_count() == 2);
        result.values[value.field(0).length_delimited()] = std::bit_cast<float>(value.field(1).fixed32());
      }
    }
  }
  return result;
}

} // namespace

TEST_CASE("the checksum is CRC-32C, masked") {
  CHECK(plain_crc32c("123456789") == 0xE3069283); // the check value of the polynomial's catalogues
  for (std::string text : {"", "a", "123456789", "a longer text, to pass every index of the table"})
    CHECK(is_masked(masked_crc32c(text), text));
}

TEST_CASE("a file has the version first, then an event for each call, with all its values") {
  temporary_directory scratch;
  auto file = event_file::create(scratch.path() / "runs" / "first", 1767225600.25);
  REQUIRE(file);
  CHECK(file->path().filename().string().starts_with("events.out.tfevents.1767225600."));
  for (uint64_t step = 0; step < 300; ++step) {
    const event_file::scalar values[]{{"loss/training", 2.0 / static_cast<double>(step + 1)}, {"samples/s", 512}};
    REQUIRE(!file->add(step, 1767225601.0 + static_cast<double>(step), values));
  }
  REQUIRE(!file->flush());
  const auto records = records_of(file->path());
  REQUIRE(records.size() == 301);
  CHECK(event_of(records[0]).version == "brain.Event:2");
  CHECK(event_of(records[0]).wall_time == 1767225600.25);
  const auto last = event_of(records.back());
  CHECK(last.step == 299);
  CHECK(last.wall_time == 1767225900.0);
  CHECK(last.values == std::map<std::string, float>{{"loss/training", 2.0f / 300}, {"samples/s", 512}});
}

TEST_CASE("two runs that begin in the same second have a file each, and a directory that cannot be made is named") {
  temporary_directory scratch;
  auto one = event_file::create(scratch.path(), 5), two = event_file::create(scratch.path(), 5);
  REQUIRE(one);
  REQUIRE(two);
  CHECK(one->path() != two->path());
  auto within_a_file = event_file::create(one->path() / "below", 5);
  REQUIRE(!within_a_file);
  CHECK(code_of(within_a_file.error()) == errc::io_error);
  CHECK(render(within_a_file.error()).find(one->path().string()) != std::string::npos);
}
