#include "tools/launch/program_path.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <unistd.h>

namespace ringmaster::launch {

namespace fs = std::filesystem;

namespace {

bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

bool is_program(const std::string& path) {
  return is_file(path) && ::access(path.c_str(), X_OK) == 0;
}

caf::error not_found(const std::string& name, const std::string& where) {
  return make_error(errc::invalid_argument, fmt::format("there is no program {} {}", name, where));
}

} // namespace

caf::expected<std::string> find_program(const std::string& name, const std::string& search_path,
                                        const std::string& last_directory) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name))
      return name;
    if (is_file(name))
      return make_error(errc::io_error, fmt::format("{} is not executable: chmod +x makes it so", name));
    return not_found(name, "at that path");
  }
  std::istringstream directories(search_path + ":" + last_directory);
  for (std::string directory; std::getline(directories, directory, ':');) {
    auto path = (directory.empty() ? std::string{"."} : directory) + "/" + name;
    if (is_program(path))
      return path;
  }
  return not_found(name, fmt::format("in PATH nor in {}", last_directory));
}

} // namespace ringmaster::launch
