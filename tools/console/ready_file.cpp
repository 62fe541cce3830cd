#include "tools/console/ready_file.hpp"

#include "messages/errc.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace ringmaster {

caf::error write_ready_file(const std::string& path, const std::string& text) {
  auto draft = path + ".new";
  int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0)
    ::close(file);
  if (!written || ::rename(draft.c_str(), path.c_str()) != 0)
    return make_error(errc::io_error, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return caf::none;
}

} // namespace ringmaster
