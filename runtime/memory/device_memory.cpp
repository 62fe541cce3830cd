#include "runtime/memory/device_memory.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/open_file.hpp"
#include "runtime/text/file_size_limit.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <limits>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace ringmaster {

namespace {

caf::error invalid_memory(const device_memory::options& opts, std::string_view what) {
  return invalid(fmt::format("{}: {}", text_of(opts.id), what));
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
                                                file_problem_text(code), advice));
}

/// What is written to a mapped file whose disk is full is lost, and the device with it, so a disk that can never hold
/// the file is refused at once. Devices that fill a disk together are not noticed here.
caf::error check_space(const device_memory::options& opts, int file) {
  struct statvfs disk;
  if (::fstatvfs(file, &disk) != 0)
    return failed(opts, "ask the size of the disk of", errno);
  const auto needed = mapped_memory::file_bytes(opts.bytes);
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
    return invalid_memory(opts, "its lowest address must be above 0");
  if (opts.bytes == 0)
    return invalid_memory(opts, "0 bytes of memory; at least 1 is needed");
  if (opts.bytes > largest_file / 4 || opts.min_address > std::numeric_limits<uint64_t>::max() - 2 * opts.bytes)
    return invalid_memory(opts, fmt::format("{:#x} bytes of memory from address {:#x}, and the same number of scratch "
                                            "bytes, exceed what 64 bits can address",
                                            opts.bytes, opts.min_address));
  return caf::none;
}

} // namespace

caf::expected<std::shared_ptr<device_memory>> device_memory::open(const options& opts) {
  RETURN_ERROR(validate(opts));
  open_file file{::open(opts.file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.descriptor < 0)
    return failed(opts, "make", errno);
  auto unused = [&](caf::error why) {
    ::unlink(opts.file.c_str());
    return why;
  };
  if (auto err = check_space(opts, file.descriptor))
    return unused(std::move(err));
  struct stat made;
  const auto file_size = file_bytes(opts.bytes);
  if (file_size > file_size_limit()) // the system would end the process
    return unused(failed(opts, fmt::format("give {} bytes to", file_size), EFBIG));
  if (::ftruncate(file.descriptor, static_cast<off_t>(file_size)) != 0)
    return unused(failed(opts, "resize", errno));
  if (::fstat(file.descriptor, &made) != 0)
    return unused(failed(opts, "examine", errno));
  auto* mapping = huge_pages::map(file.descriptor, file_size, PROT_READ | PROT_WRITE);
  if (mapping == MAP_FAILED)
    return unused(failed(opts, "map", errno));
  std::error_code ignored;
  memory_place place{opts.id,
                     opts.min_address,
                     opts.bytes,
                     std::filesystem::absolute(opts.file, ignored).string(),
                     this_host(),
                     static_cast<uint64_t>(made.st_dev),
                     static_cast<uint64_t>(made.st_ino),
                     opts.link};
  return std::shared_ptr<device_memory>{new device_memory{std::move(place), mapping}};
}

device_memory::device_memory(memory_place place, std::byte* mapping)
  : mapped_memory(std::move(place), mapping), user_(min_address(), max_address()),
    scratch_(max_address(), 2 * max_address() - min_address()) {}

device_memory::~device_memory() {
  remove_file();
}

void device_memory::remove_file() noexcept {
  if (!removed_.exchange(true))
    ::unlink(place()->file.c_str());
}

caf::expected<uint64_t> device_memory::allocate(uint64_t bytes, uint64_t alignment) {
  std::lock_guard guard{mutex_};
  auto address = user_.allocate(bytes, alignment);
  ensure(!address || (*address >= min_address() && bytes <= max_address() - *address),
         "an allocation lies within the user's range");
  return address ? address : with_context(text_of(id()), address.error());
}

caf::error device_memory::free(uint64_t address) {
  std::lock_guard guard{mutex_};
  auto err = user_.free(address);
  return err ? with_context(text_of(id()), err) : err;
}

caf::expected<uint64_t> device_memory::allocate_scratch(uint64_t bytes) {
  constexpr uint64_t alignment = 256; // that of a user's allocation
  std::lock_guard guard{mutex_};
  auto address = scratch_.allocate(bytes, alignment);
  ensure(!address || *address >= max_address(), "scratch lies after the user's range");
  return address ? address : with_context(text_of(id()) + ", scratch", address.error());
}

caf::error device_memory::free_scratch(uint64_t address) {
  std::lock_guard guard{mutex_};
  auto err = scratch_.free(address);
  return err ? with_context(text_of(id()) + ", scratch", err) : err;
}

uint64_t device_memory::scratch_used() const {
  std::lock_guard guard{mutex_};
  return scratch_.used();
}

} // namespace ringmaster
