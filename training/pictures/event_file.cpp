#include "training/pictures/event_file.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/own_address.hpp"
#include "training/pictures/tensorboard.pb.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace ringmaster::training {

namespace {

constexpr int files_a_second_max = 1000;

caf::error cannot(std::string_view what, const std::filesystem::path& path, int cause) {
  return make_error(errc::io_error, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(cause)));
}

consteval std::array<uint32_t, 256> crc32c_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}

template <class T>
std::string_view bytes_of(const T& x) {
  static_assert(std::endian::native == std::endian::little, "TFRecord files are little-endian");
  return {reinterpret_cast<const char*>(&x), sizeof(x)};
}

} // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr auto table = crc32c_table();
  uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

caf::expected<event_file> event_file::create(const std::filesystem::path& directory, double seconds) {
  ensure(seconds >= 0, "a time is after 1970");
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem)
    return cannot("make the directory", directory, problem.value());
  const auto host = own_host_name();
  // Names contain "tfevents"; TensorBoard reads a directory's files in the order of their names. Two runs may begin in
  // the same second.
  for (int number = 0; number < files_a_second_max; ++number) {
    auto path = directory
                / fmt::format("events.out.tfevents.{:010}.{}.{}", static_cast<uint64_t>(seconds), host, number);
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST)
      continue;
    if (descriptor < 0)
      return cannot("create", path, errno);
    event_file result{std::move(path), ::fdopen(descriptor, "wb")};
    tensorboard::Event first;
    first.set_wall_time(seconds);
    first.set_file_version("brain.Event:2");
    if (auto failed = result.append(first.SerializeAsString()))
      return failed;
    if (auto failed = result.flush())
      return failed;
    return result;
  }
  return make_error(errc::io_error,
                    fmt::format("{} has {} files of events of this second", directory.string(), files_a_second_max));
}

caf::error event_file::add(uint64_t step, double seconds, std::span<const scalar> scalars) {
  ensure(!scalars.empty(), "an event has values");
  tensorboard::Event event;
  event.set_wall_time(seconds);
  event.set_step(static_cast<int64_t>(step));
  for (const auto& [tag, value] : scalars) {
    auto& added = *event.mutable_summary()->add_value();
    added.set_tag(std::string{tag});
    added.set_simple_value(static_cast<float>(value));
  }
  return append(event.SerializeAsString());
}

caf::error event_file::append(std::string_view event) {
  const uint64_t length = event.size();
  const uint32_t length_crc = masked_crc32c(bytes_of(length)), event_crc = masked_crc32c(event);
  std::string record;
  record.reserve(event.size() + 16);
  for (const auto part : {bytes_of(length), bytes_of(length_crc), event, bytes_of(event_crc)})
    record += part;
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size())
    return cannot("write", path_, errno);
  return caf::none;
}

caf::error event_file::flush() {
  return std::fflush(file_.get()) == 0 ? caf::error{} : cannot("write", path_, errno);
}

} // namespace ringmaster::training
