#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ringmaster::test {

/// All its bytes; none of a file that is not there.
inline std::string content_of(const std::filesystem::path& file) {
  std::ostringstream bytes;
  bytes << std::ifstream{file, std::ios::binary}.rdbuf();
  return bytes.str();
}

/// In place of what it had.
inline void write_content(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream{file, std::ios::binary} << bytes;
}

} // namespace ringmaster::test
