#include "runtime/mailbox/mailbox_file.hpp"

#include "messages/errc.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/memory/open_file.hpp"
#include "runtime/text/file_size_limit.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <utility>

namespace ringmaster {

namespace {

caf::error failed(errc code, const std::filesystem::path& file, std::string_view why) {
  return make_error(code, fmt::format("the page {} where ranks meet cannot be used: {}", file.string(), why));
}

std::byte* map(int file, uint64_t bytes) {
  auto* result = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return result == MAP_FAILED ? nullptr : static_cast<std::byte*>(result);
}

} // namespace

caf::expected<std::unique_ptr<mailbox_file>> mailbox_file::make(const std::filesystem::path& file, uint64_t bytes) {
  open_file made{::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (made.descriptor < 0)
    return failed(errc::io_error, file, std::strerror(errno));
  auto* mapping = static_cast<std::byte*>(nullptr);
  auto problem = bytes > file_size_limit() ? EFBIG : ::posix_fallocate(made.descriptor, 0, static_cast<off_t>(bytes));
  if (problem == 0 && (mapping = map(made.descriptor, bytes)) == nullptr)
    problem = errno;
  if (problem == 0)
    return std::unique_ptr<mailbox_file>{new mailbox_file{file, mapping, bytes}};
  ::unlink(file.c_str());
  return failed(errc::io_error, file, file_problem_text(problem));
}

caf::expected<std::unique_ptr<mailbox_file>> mailbox_file::reach(const proto::MeetingResponse& place, uint64_t bytes) {
  if (place.host() == 0 || place.host() != this_host())
    return failed(errc::unreachable, place.file(), "it is on another host");
  open_file there{::open(place.file().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  struct stat about;
  if (there.descriptor < 0 || ::fstat(there.descriptor, &about) != 0)
    return failed(errc::unreachable, place.file(), std::strerror(errno));
  if (!S_ISREG(about.st_mode) || about.st_dev != place.file_system() || about.st_ino != place.inode())
    return failed(errc::unreachable, place.file(), "another file has that name here, as in a container of its own");
  if (about.st_uid != ::geteuid())
    return failed(errc::unreachable, place.file(), "it belongs to another user");
  if (static_cast<uint64_t>(about.st_size) < bytes)
    return failed(errc::unreachable, place.file(), fmt::format("it has {} bytes, not {}", about.st_size, bytes));
  if (auto* mapping = map(there.descriptor, bytes))
    return std::unique_ptr<mailbox_file>{new mailbox_file{place.file(), mapping, bytes}};
  return failed(errc::unreachable, place.file(), std::strerror(errno));
}

mailbox_file::mailbox_file(std::filesystem::path file, std::byte* mapping, uint64_t bytes)
  : file_(std::move(file)), mapping_(mapping), bytes_(bytes), guard_(mapping, bytes) {}

mailbox_file::~mailbox_file() {
  guard_.end();
  ::munmap(mapping_, bytes_);
}

void mailbox_file::remove() const {
  ::unlink(file_.c_str());
}

void mailbox_file::tell(proto::MeetingResponse& place) const {
  struct stat about {};
  if (::stat(file_.c_str(), &about) != 0)
    return; // no rank maps it then
  place.set_file(file_.string());
  place.set_host(this_host());
  place.set_file_system(about.st_dev);
  place.set_inode(about.st_ino);
}

} // namespace ringmaster
