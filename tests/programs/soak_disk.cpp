#include "tests/programs/soak_disk.hpp"

#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/mount.h>
#include <vector>

namespace ringmaster::soak {

namespace {

constexpr const char* size_option = "size=256m";

} // namespace

std::unique_ptr<soak_disk> soak_disk::make(const std::string& path) {
  std::error_code none;
  std::filesystem::create_directories(path, none);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0
      || ::mount("none", path.c_str(), "tmpfs", 0, size_option) != 0)
    return nullptr;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, none);
  return std::unique_ptr<soak_disk>{new soak_disk{path}};
}

soak_disk::~soak_disk() {
  ::umount2(path_.c_str(), MNT_DETACH);
}

void soak_disk::fill() const {
  std::ofstream file{hog(), std::ios::binary};
  const std::vector<char> block(1 << 20);
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush())
    ;
  file.close();
  std::ofstream rest{hog(), std::ios::binary | std::ios::app};
  constexpr std::streamsize page = 4096;
  while (rest.write(block.data(), page).flush())
    ;
}

void soak_disk::empty() const {
  std::error_code none;
  std::filesystem::remove(hog(), none);
}

} // namespace ringmaster::soak
