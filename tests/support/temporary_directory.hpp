#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ringmaster::test {

/// An empty directory, in memory where the system has such, removed with this object.
class temporary_directory {
public:
  temporary_directory() {
    std::error_code ec;
    std::filesystem::path base = std::filesystem::is_directory("/dev/shm", ec) ? std::filesystem::path{"/dev/shm"}
                                                                               : std::filesystem::temp_directory_path();
    auto name = (base / "ringmaster-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      std::abort();
    path_ = name;
  }

  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;

  ~temporary_directory() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace ringmaster::test
