#include "runtime/configuration/places.hpp"

namespace ringmaster {

namespace fs = std::filesystem;

namespace {

/// Programs are built in build/PRESET/, examples and tests one folder below that.
constexpr int levels = 4;

std::optional<fs::path> in_source_tree(fs::path directory, const fs::path& file) {
  for (int i = 0; i < levels && directory.has_relative_path(); ++i, directory = directory.parent_path())
    if (std::error_code ignored; fs::exists(directory / file, ignored))
      return directory / file;
  return std::nullopt;
}

/// The first of the two that exists.
std::optional<fs::path> installed(const fs::path& here, const fs::path& in_system) {
  for (auto& place : {here, in_system})
    if (std::error_code ignored; fs::exists(place, ignored))
      return place;
  return std::nullopt;
}

} // namespace

fs::path program_directory() {
  std::error_code failure;
  auto self = fs::read_symlink("/proc/self/exe", failure);
  return failure ? fs::path{} : self.parent_path();
}

std::optional<fs::path> find_configuration(const fs::path& directory) {
  const fs::path name{"ringmaster/caf-application.conf"};
  if (auto found = in_source_tree(directory, "config/caf-application.conf"))
    return found;
  return installed(directory.parent_path() / "etc" / name, "/etc" / name);
}

std::optional<fs::path> find_data(std::string_view name, const fs::path& directory) {
  if (auto found = in_source_tree(directory, fs::path{"bench/data"} / name))
    return found;
  return installed(directory.parent_path() / "share/ringmaster" / name, fs::path{"/usr/share/ringmaster"} / name);
}

} // namespace ringmaster
