#include "tests/fuzz/fuzz_target.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ringmaster::fuzz {

namespace {

std::vector<const fuzz_target*>& registered() {
  static std::vector<const fuzz_target*> result;
  return result;
}

} // namespace

fuzz_target::fuzz_target(std::string_view its_name, void (*its_run)(std::string_view bytes))
  : name(its_name), run(its_run) {
  registered().push_back(this);
}

const std::vector<const fuzz_target*>& fuzz_target::all() {
  return registered();
}

uint8_t input_parts::byte() {
  if (rest_.empty())
    return 0;
  const auto result = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return result;
}

std::string_view input_parts::part() {
  size_t bytes = byte();
  bytes |= size_t{byte()} << 8;
  const auto result = rest_.substr(0, bytes);
  rest_.remove_prefix(result.size());
  return result;
}

std::span<const std::byte> as_bytes(std::string_view bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

memory_file::memory_file(std::string_view content) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  ensure(descriptor_ >= 0, "the system has memory for a file");
  ensure(::write(descriptor_, content.data(), content.size()) == static_cast<ssize_t>(content.size()),
         "a file in memory takes what is written to it");
}

memory_file::~memory_file() {
  ::close(descriptor_);
}

std::filesystem::path memory_file::path() const {
  return fmt::format("/proc/self/fd/{}", descriptor_);
}

} // namespace ringmaster::fuzz
