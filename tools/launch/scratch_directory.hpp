#pragma once

#include <caf/expected.hpp>

#include <string>

namespace ringmaster::launch {

/// A fresh directory in $TMPDIR or /tmp, which only we can read; removed with its files on destruction.
class scratch_directory {
public:
  static caf::expected<scratch_directory> make();
  scratch_directory(scratch_directory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  scratch_directory& operator=(scratch_directory&&) = delete;
  ~scratch_directory();

  const std::string& path() const { return path_; }

private:
  explicit scratch_directory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

} // namespace ringmaster::launch
