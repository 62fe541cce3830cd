#include "runtime/journal/durable_mark.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/file_size_limit.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace ringmaster {
namespace {

constexpr std::string_view prefix = "ringmaster journal, durable up to record ";
constexpr size_t number_digits = 20;

// The number and its complement, so that a flipped digit is noticed.
std::string text_of(uint64_t value) {
  return fmt::format("{}{:020} {:020}\n", prefix, value, ~value);
}

std::optional<uint64_t> parse(std::string_view text) {
  uint64_t value = 0;
  if (text.size() < prefix.size() + number_digits)
    return std::nullopt;
  auto number = text.substr(prefix.size(), number_digits);
  auto [end, ec] = std::from_chars(number.data(), number.data() + number_digits, value);
  if (ec != std::errc{} || end != number.data() + number_digits || text != text_of(value))
    return std::nullopt;
  return value;
}

caf::error system_error(std::string_view what, const std::filesystem::path& file) {
  return make_error(errc::io_error, fmt::format("cannot {} '{}': {}", what, file.string(), file_problem_text(errno)));
}

} // namespace

caf::expected<std::optional<uint64_t>> durable_mark::read(const std::filesystem::path& dir) {
  auto file = dir / file_name;
  auto fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return std::optional<uint64_t>{};
    return system_error("read", file);
  }
  char text[128];
  auto size = ::pread(fd, text, sizeof(text), 0);
  auto err = size < 0 ? system_error("read", file) : caf::none;
  ::close(fd);
  if (err)
    return err;
  if (size == 0)
    return std::optional<uint64_t>{};
  auto value = parse({text, static_cast<size_t>(size)});
  if (!value)
    return malformed(fmt::format("journal '{}' is corrupt: its file {} does not say up to which record it is durable",
                                 dir.string(), file_name));
  return value;
}

caf::expected<durable_mark> durable_mark::open(const std::filesystem::path& dir) {
  TRY(value, read(dir));
  auto file = dir / file_name;
  auto fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return system_error("create", file);
  durable_mark mark{std::move(file), fd, value->value_or(0)};
  if (!value->has_value()) {
    RETURN_ERROR(mark.raise(0));
    if (::fsync(fd) != 0)
      return system_error("sync", mark.file_);
  }
  return mark;
}

bool durable_mark::in_place() const noexcept {
  ensure(fd_ >= 0, "a mark that was moved from is not used");
  struct stat open_file {
  }, named_file{};
  return ::fstat(fd_, &open_file) == 0 && ::stat(file_.c_str(), &named_file) == 0
         && open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
}

caf::error durable_mark::raise(uint64_t value) {
  ensure(fd_ >= 0, "a mark that was moved from is not used");
  ensure(value >= value_, "records that were durable stay durable");
  auto text = text_of(value);
  auto written = ::pwrite(fd_, text.data(), text.size(), 0);
  if (written != static_cast<ssize_t>(text.size()))
    return system_error("write", file_);
  value_ = value;
  return caf::none;
}

durable_mark::durable_mark(std::filesystem::path file, int fd, uint64_t value)
  : file_(std::move(file)), fd_(fd), value_(value) {}

durable_mark::durable_mark(durable_mark&& other) noexcept
  : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)), value_(other.value_) {}

durable_mark& durable_mark::operator=(durable_mark&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(fd_, other.fd_);
  std::swap(value_, other.value_);
  return *this;
}

durable_mark::~durable_mark() {
  if (fd_ >= 0)
    ::close(fd_);
}

} // namespace ringmaster
