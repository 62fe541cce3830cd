#include "runtime/memory/device_memory.hpp"

#include "messages/errc.hpp"
#include "runtime/memory/open_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace ringmaster {

namespace {

caf::error invalid_memory(const device_memory::options& opts, std::string_view what) {
  return make_error(errc::invalid_argument, fmt::format("{}: {}", text_of(opts.id), what));
}

caf::error failed(const device_memory::options& opts, std::string_view what, int code) {
  std::string_view advice;
  if (code == ENOSPC || code == EDQUOT || code == EFBIG)
    advice = "; free space there, give the devices less memory, or put their files elsewhere";
  else if (code == ENOMEM)
    advice = "; give the devices less memory, or raise the limit on address space";
  else if (code == EMFILE || code == ENFILE)
    advice = "; raise the limit on open files";
  return make_error(errc::io_error, fmt::format("{}: cannot {} {}: {}{}", text_of(opts.id), what, opts.file.string(),
                                                std::strerror(code), advice));
}

/// Gives the file its length. A file of another length keeps the user's range as far as both have it; a scratch area
/// never becomes the user's.
caf::error resize(const device_memory::options& opts, int file, uint64_t old_bytes) {
  const auto new_bytes = 2 * opts.bytes;
  if (old_bytes == new_bytes)
    return caf::none;
  const auto kept = std::min(old_bytes / 2, opts.bytes);
  for (auto length : {kept, new_bytes})
    if (::ftruncate(file, static_cast<off_t>(length)) != 0)
      return failed(opts, "resize", errno);
  return caf::none;
}

/// A mapped file whose disk is full kills the process that writes to it, so a disk that can never hold the file is
/// refused while it can still be said in words. Devices that fill a disk together are not noticed here.
caf::error check_space(const device_memory::options& opts, int file, uint64_t held) {
  struct statvfs disk;
  if (::fstatvfs(file, &disk) != 0)
    return failed(opts, "ask the size of the disk of", errno);
  const auto needed = 2 * opts.bytes - std::min(held, 2 * opts.bytes);
  const auto available = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (needed > available)
    return failed(opts, fmt::format("find {} bytes of disk ({} are available) for", needed, available), ENOSPC);
  return caf::none;
}

caf::error validate(const device_memory::options& opts) {
  constexpr auto largest_file = static_cast<uint64_t>(std::numeric_limits<off_t>::max());
  if (opts.file.empty())
    return invalid_memory(opts, "its memory needs the name of a file");
  if (opts.min_address == 0)
    return invalid_memory(opts, "its lowest address must be above 0, which is no address");
  if (opts.bytes == 0)
    return invalid_memory(opts, "0 bytes of memory; at least 1 is needed");
  if (opts.bytes > largest_file / 2 || opts.min_address > std::numeric_limits<uint64_t>::max() - 2 * opts.bytes)
    return invalid_memory(
      opts, fmt::format("{:#x} bytes of memory from address {:#x}, and as many of scratch, go beyond what "
                        "64 bits can address",
                        opts.bytes, opts.min_address));
  return caf::none;
}

/// The same error with the device's name before it.
caf::error named(std::string_view owner, const caf::error& err) {
  return make_error(code_of(err), fmt::format("{}: {}", owner, render(err)));
}

} // namespace

caf::expected<std::shared_ptr<device_memory>> device_memory::open(const options& opts) {
  if (auto err = validate(opts))
    return err;
  if (opts.file.has_parent_path()) {
    std::error_code code;
    std::filesystem::create_directories(opts.file.parent_path(), code);
    if (code)
      return failed(opts, "create the directory of", code.value());
  }
  open_file file{::open(opts.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (file.descriptor < 0)
    return failed(opts, "open", errno);
  struct stat before;
  if (::fstat(file.descriptor, &before) != 0)
    return failed(opts, "examine", errno);
  if (!S_ISREG(before.st_mode))
    return invalid_memory(opts, fmt::format("{} is no regular file", opts.file.string()));
  if (auto err = check_space(opts, file.descriptor, static_cast<uint64_t>(before.st_blocks) * 512))
    return err;
  if (auto err = resize(opts, file.descriptor, static_cast<uint64_t>(before.st_size)))
    return err;
  auto* mapping = huge_pages::map(file.descriptor, 2 * opts.bytes, PROT_READ | PROT_WRITE);
  if (mapping == MAP_FAILED)
    return failed(opts, "map", errno);
  std::error_code ignored;
  memory_place place{opts.id,
                     opts.min_address,
                     opts.bytes,
                     std::filesystem::absolute(opts.file, ignored).string(),
                     this_host(),
                     static_cast<uint64_t>(before.st_dev),
                     static_cast<uint64_t>(before.st_ino),
                     opts.link};
  return std::shared_ptr<device_memory>{new device_memory{std::move(place), mapping}};
}

device_memory::device_memory(memory_place place, std::byte* mapping)
  : mapped_memory(std::move(place), mapping, false), user_(min_address(), max_address()),
    scratch_(max_address(), 2 * max_address() - min_address()) {}

caf::expected<uint64_t> device_memory::allocate(uint64_t bytes, uint64_t alignment) {
  std::lock_guard guard{mutex_};
  auto address = user_.allocate(bytes, alignment);
  return address ? address : named(text_of(id()), address.error());
}

caf::error device_memory::free(uint64_t address) {
  std::lock_guard guard{mutex_};
  auto err = user_.free(address);
  return err ? named(text_of(id()), err) : err;
}

caf::expected<uint64_t> device_memory::allocate_scratch(uint64_t bytes) {
  constexpr uint64_t alignment = 256; // that of a user's allocation
  std::lock_guard guard{mutex_};
  auto address = scratch_.allocate(bytes, alignment);
  return address ? address : named(text_of(id()) + ", scratch", address.error());
}

caf::error device_memory::free_scratch(uint64_t address) {
  std::lock_guard guard{mutex_};
  auto err = scratch_.free(address);
  return err ? named(text_of(id()) + ", scratch", err) : err;
}

uint64_t device_memory::scratch_used() const {
  std::lock_guard guard{mutex_};
  return scratch_.used();
}

} // namespace ringmaster
