#include "runtime/trust/private_file.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/memory/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ringmaster {

namespace {

caf::error file_problem(const std::string& what) {
  const auto problem = errno;
  return make_error(problem == ENOSPC || problem == EDQUOT ? errc::no_space : errc::io_error,
                    fmt::format("{}: {}", what, std::strerror(problem)));
}

caf::error check_about(const struct stat& about, const std::string& named, const std::filesystem::path& file) {
  if (S_ISDIR(about.st_mode))
    return invalid(fmt::format("{} is a directory: name a file in it", named));
  if (!S_ISREG(about.st_mode))
    return invalid(fmt::format("{} is no regular file", named));
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return invalid(fmt::format("{} has the permissions {:04o}, so other users can read or change it: chmod 600 {}",
                               named, about.st_mode & 07777, file.string()));
  return caf::none;
}

caf::error write_whole(int descriptor, std::string_view bytes, const std::string& named) {
  while (!bytes.empty()) {
    const auto count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return file_problem(fmt::format("{} cannot be written", named));
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return ::fsync(descriptor) == 0 ? caf::error{} : file_problem(fmt::format("{} cannot be written", named));
}

/// Writes a file of another name, and has `finish` give it its own.
template <class Finish>
caf::error write_beside(const std::filesystem::path& file, std::string_view bytes, const std::string& named,
                        Finish finish) {
  auto temporary = file.string() + ".XXXXXX";
  open_file out{::mkostemp(temporary.data(), O_CLOEXEC)}; // with the permissions 0600
  if (out.descriptor < 0)
    return file_problem(fmt::format("{} cannot be written", named));
  auto problem = write_whole(out.descriptor, bytes, named);
  if (!problem)
    problem = finish(temporary.c_str());
  if (problem)
    ::unlink(temporary.c_str());
  return problem;
}

std::string named(const std::filesystem::path& file, const std::string& what) {
  return fmt::format("{} {}", what, file.string());
}

} // namespace

caf::expected<std::string> read_private_file(const std::filesystem::path& file, const std::string& what,
                                             size_t bytes_max) {
  const auto name = named(file, what);
  const open_file in{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // a pipe without a writer must not block
  if (in.descriptor < 0 && errno == ENOENT)
    return make_error(errc::io_error, fmt::format("{} does not exist", name));
  if (in.descriptor < 0)
    return file_problem(fmt::format("{} cannot be read", name));
  struct stat about {};
  if (::fstat(in.descriptor, &about) != 0)
    return file_problem(fmt::format("{} cannot be read", name));
  RETURN_ERROR(check_about(about, name, file));
  std::string result(std::min<size_t>(static_cast<size_t>(about.st_size), bytes_max) + 1, '\0');
  size_t got = 0;
  while (got < result.size()) {
    const auto count = ::read(in.descriptor, result.data() + got, result.size() - got);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return file_problem(fmt::format("{} cannot be read", name));
    if (count == 0)
      break;
    got += static_cast<size_t>(count);
  }
  if (got > bytes_max)
    return invalid(fmt::format("{} has more than {} bytes", name, bytes_max));
  result.resize(got);
  return result;
}

caf::error create_private_file(const std::filesystem::path& file, const std::string& what, std::string_view bytes) {
  const auto name = named(file, what);
  return write_beside(file, bytes, name, [&](const char* written) -> caf::error {
    if (::link(written, file.c_str()) == 0) { // which, unlike a rename, replaces nothing
      ::unlink(written);
      return caf::none;
    }
    if (errno == EEXIST)
      return make_error(errc::in_use, fmt::format("{} exists already, and is not overwritten", name));
    return file_problem(fmt::format("{} cannot be written", name));
  });
}

caf::error replace_private_file(const std::filesystem::path& file, const std::string& what, std::string_view bytes) {
  const auto name = named(file, what);
  return write_beside(file, bytes, name, [&](const char* written) -> caf::error {
    if (::rename(written, file.c_str()) == 0)
      return caf::none;
    return file_problem(fmt::format("{} cannot be written", name));
  });
}

} // namespace ringmaster
