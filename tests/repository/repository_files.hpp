#pragma once

#include "tests/support/file_content.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace ringmaster::test {

inline const std::filesystem::path repository_root = RINGMASTER_SOURCE_DIR;

/// The path from the root of every file in the tree, without the build folder and hidden files.
inline std::vector<std::string> repository_files() {
  std::vector<std::string> result;
  for (std::filesystem::recursive_directory_iterator i{repository_root}, end; i != end; ++i) {
    auto name = i->path().filename().string();
    if (name.front() == '.' || (i.depth() == 0 && name == "build"))
      i.disable_recursion_pending();
    else if (i->is_regular_file())
      result.push_back(i->path().lexically_relative(repository_root).string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

inline bool is_source(const std::string& path) {
  auto extension = std::filesystem::path{path}.extension();
  return extension == ".cpp" || extension == ".hpp";
}

inline std::string text_of_file(const std::string& path) {
  return content_of(repository_root / path);
}

} // namespace ringmaster::test
