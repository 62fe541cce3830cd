#pragma once

#include <unistd.h>

namespace ringmaster {

/// Closes a file at the end of a scope; a mapping does not need it.
struct open_file {
  int descriptor;

  explicit open_file(int opened) : descriptor(opened) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
};

} // namespace ringmaster
