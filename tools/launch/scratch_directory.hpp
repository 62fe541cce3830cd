#pragma once

#include <caf/expected.hpp>

#include <string>
#include <utility>

namespace ringmaster::launch {

/// A new directory in $TMPDIR or /tmp that only this user can read. It is removed with its files unless it is kept.
class scratch_directory {
public:
  static caf::expected<scratch_directory> make();
  scratch_directory(scratch_directory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  scratch_directory& operator=(scratch_directory&&) = delete;
  ~scratch_directory();

  const std::string& path() const { return path_; }
  /// Passes the directory to the caller; returns its path.
  std::string keep() { return std::exchange(path_, {}); }

private:
  explicit scratch_directory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

} // namespace ringmaster::launch
