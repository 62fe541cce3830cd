#include "training/checkpoints/durable_file.hpp"

#include "messages/errc.hpp"
#include "runtime/memory/open_file.hpp"
#include "runtime/text/file_size_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

/// How many bytes went; less than all of them where errno says why.
size_t write_bytes(int descriptor, std::span<const std::byte> bytes) {
  constexpr size_t once_max = size_t{1} << 30; // Linux takes no more in one call
  size_t done = 0;
  while (done < bytes.size()) {
    const auto count = ::write(descriptor, bytes.data() + done, std::min(once_max, bytes.size() - done));
    if (count < 0 && errno != EINTR)
      break;
    done += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  return done;
}

caf::error failed(const fs::path& file, int code, const std::string& details = {}) {
  return make_error(write_failure(code), fmt::format("{}: cannot be written: {}{}; what was there before stays",
                                                     file.string(), std::strerror(code), details));
}

/// Writes the draft of the file and syncs it. Errors: as of write_durably.
caf::error write_draft(const fs::path& file, const fs::path& draft,
                       std::span<const std::span<const std::byte>> pieces) {
  const open_file opened{::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (opened.descriptor < 0)
    return failed(file, errno);
  size_t all = 0, done = 0;
  for (auto piece : pieces)
    all += piece.size();
  for (auto piece : pieces) {
    const auto count = write_bytes(opened.descriptor, piece);
    done += count;
    if (const auto code = errno; count < piece.size())
      return failed(file, code, fmt::format(" after {} of {} bytes{}", done, all, file_size_advice(code)));
  }
  return ::fsync(opened.descriptor) == 0 ? caf::error{} : failed(file, errno);
}

/// A name is on the disk when its directory is.
bool sync_directory(const fs::path& directory) {
  const open_file opened{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  return opened.descriptor >= 0 && ::fsync(opened.descriptor) == 0;
}

} // namespace

errc write_failure(int code) {
  return code == ENOSPC || code == EDQUOT || code == EFBIG ? errc::no_space : errc::io_error;
}

caf::error write_durably(const fs::path& file, std::span<const std::span<const std::byte>> pieces) {
  auto draft = file;
  draft += draft_suffix;
  if (auto problem = write_draft(file, draft, pieces)) {
    ::unlink(draft.c_str());
    return problem;
  }
  if (::rename(draft.c_str(), file.c_str()) != 0) {
    const auto code = errno;
    ::unlink(draft.c_str());
    return failed(file, code);
  }
  const auto directory = file.has_parent_path() ? file.parent_path() : fs::path{"."};
  if (!sync_directory(directory))
    return make_error(write_failure(errno),
                      fmt::format("{}: is written, but may be gone after a power failure: its directory "
                                  "cannot be synced: {}",
                                  file.string(), std::strerror(errno)));
  return caf::none;
}

} // namespace ringmaster::training
