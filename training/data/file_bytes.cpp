#include "training/data/file_bytes.hpp"

#include "messages/errc.hpp"
#include "runtime/memory/open_file.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace ringmaster::training {

namespace {

constexpr size_t mapped_bytes_min = 64 << 20; ///< More than any of the usual image files has.

caf::error unreadable(const std::filesystem::path& file, const char* why) {
  return make_error(errc::io_error, fmt::format("{}: cannot be read: {}", printable(file.string()), why));
}

/// Whether all of it came.
bool read_whole(int descriptor, std::span<std::byte> target) {
  while (!target.empty()) {
    const auto count = ::read(descriptor, target.data(), target.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      errno = count == 0 ? EIO : errno; // another process has truncated it
      return false;
    }
    target = target.subspan(static_cast<size_t>(count));
  }
  return true;
}

} // namespace

caf::expected<file_bytes> file_bytes::of(const std::filesystem::path& file) {
  const open_file opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // a pipe would wait for its writer
  struct stat found {};
  if (opened.descriptor < 0 || ::fstat(opened.descriptor, &found) != 0)
    return unreadable(file, std::strerror(errno));
  if (!S_ISREG(found.st_mode))
    return unreadable(file, "it is no regular file");
  file_bytes result{file};
  const auto size = static_cast<size_t>(found.st_size);
  if (size >= mapped_bytes_min) {
    auto* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.descriptor, 0);
    if (memory == MAP_FAILED)
      return unreadable(file, std::strerror(errno));
    result.mapped_ = std::make_unique<const mapping>(std::span{static_cast<std::byte*>(memory), size});
    return result;
  }
  result.read_.resize(size);
  if (!read_whole(opened.descriptor, result.read_))
    return unreadable(file, std::strerror(errno));
  return result;
}

std::span<const std::byte> file_bytes::bytes() const noexcept {
  return mapped_ ? mapped_->bytes() : std::span<const std::byte>{read_};
}

caf::error file_bytes::damage() const {
  return mapped_ && mapped_->struck() ? unreadable(file_, "it was truncated after it was opened") : caf::none;
}

file_bytes::mapping::~mapping() {
  guard_.end();
  ::munmap(bytes_.data(), bytes_.size());
}

} // namespace ringmaster::training
