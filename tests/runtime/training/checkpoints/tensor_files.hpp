#pragma once

#include "runtime/training/checkpoints/safetensors.hpp"
#include "tests/support/temporary_directory.hpp"

#include <csignal>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <vector>

namespace ringmaster::test {

inline std::string content_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream{file, std::ios::binary}.rdbuf();
  return text.str();
}

inline void write_content(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream{file, std::ios::binary} << bytes;
}

/// A tensor of floats, which must stay.
inline training::stored_tensor floats(const std::string& name, const std::vector<float>& values) {
  return {name, "F32", {values.size()}, std::as_bytes(std::span{values})};
}

/// No file grows beyond so many bytes meanwhile, as on a full disk.
class small_disk {
public:
  explicit small_disk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~small_disk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int);
};

} // namespace ringmaster::test
