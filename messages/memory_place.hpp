#pragma once

#include "messages/ids.hpp"

#include <caf/meta/type_name.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// Where other processes fetch what a process's devices offer: actors/links. It changes whenever the process is
/// another.
struct link_place {
  uint64_t process = 0; ///< A random number of its own, by which no other is taken for it; 0: it has none.
  std::vector<std::string> endpoints; ///< Numeric: "10.0.0.7:4711", "[fe80::1]:4711"; one for each of its addresses.
  std::string name;                   ///< In its certificate; empty: it has none.

  friend auto operator<=>(const link_place&, const link_place&) = default;
};

/// Where the memory of a device lies, such that another process can tell whether it can reach it: the file's name means
/// something on the same host only, and only if both see the same file, which containers may not.
struct memory_place {
  device_id device;
  uint64_t min_address = 0;
  uint64_t bytes = 0;       ///< Of the user's range; the file has the same number of scratch bytes after them.
  std::string file;         ///< Absolute; empty: its memory is not accessible.
  uint64_t host = 0;        ///< The running kernel's: see this_host. 0: not known, so no other process is on it.
  uint64_t file_system = 0; ///< The kernel's number of it.
  uint64_t inode = 0;       ///< Of the file within it.
  link_place link = {};     ///< For those that do not see the file.

  friend auto operator<=>(const memory_place&, const memory_place&) = default;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, link_place& x) {
  return f(caf::meta::type_name("link_place"), x.process, x.endpoints, x.name);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, memory_place& x) {
  return f(caf::meta::type_name("memory_place"), x.device, x.min_address, x.bytes, x.file, x.host, x.file_system,
           x.inode, x.link);
}

} // namespace ringmaster
