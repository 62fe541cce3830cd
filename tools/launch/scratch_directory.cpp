#include "tools/launch/scratch_directory.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ringmaster::launch {

caf::expected<scratch_directory> scratch_directory::make() {
  auto* base = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/caf-run-XXXXXX", base != nullptr && *base != '\0' ? base : "/tmp");
  if (::mkdtemp(path.data()) == nullptr)
    return make_error(errc::io_error, fmt::format("cannot make a directory {}: {}", path, std::strerror(errno)));
  return scratch_directory{path};
}

scratch_directory::~scratch_directory() {
  std::error_code ignored;
  if (!path_.empty())
    std::filesystem::remove_all(path_, ignored);
}

} // namespace ringmaster::launch
