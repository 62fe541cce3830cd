#pragma once

#include <memory>
#include <string>

namespace ringmaster::soak {

/// A small file system in memory that can be filled: a disk that is full. It ends with this, and at the latest with
/// this process, which has mounts of its own from then on.
class soak_disk {
public:
  /// At this path, which is made. Moves the calling thread, and those that it starts from now on, into a mount
  /// namespace of their own: to be called before there are others. Nothing where the system does not allow it: it takes
  /// root.
  static std::unique_ptr<soak_disk> make(const std::string& path);

  ~soak_disk();
  soak_disk(const soak_disk&) = delete;
  soak_disk& operator=(const soak_disk&) = delete;

  void fill() const;
  void empty() const;

private:
  explicit soak_disk(std::string path) : path_(std::move(path)) {}
  std::string hog() const { return path_ + "/hog"; }

  std::string path_;
};

} // namespace ringmaster::soak
