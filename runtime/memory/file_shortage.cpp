#include "runtime/memory/file_shortage.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

namespace ringmaster {

caf::error shortage_of(const mapped_memory& memory) {
  auto& place = *memory.place();
  struct stat now {};
  if (::stat(place.file.c_str(), &now) != 0 || now.st_ino != place.inode || now.st_dev != place.file_system)
    return caf::none; // removed, or another one has its name: what is mapped is as it was
  auto bytes = static_cast<uint64_t>(now.st_size);
  if (bytes >= 2 * place.bytes) // the scratch area comes after it
    return caf::none;
  return make_error(errc::device_lost, fmt::format("{}: its memory file {} was cut: it has {} bytes, not {}",
                                                   text_of(memory.id()), place.file, bytes, 2 * place.bytes));
}

} // namespace ringmaster
