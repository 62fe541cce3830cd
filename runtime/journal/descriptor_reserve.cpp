#include "runtime/journal/descriptor_reserve.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace ringmaster {

bool descriptor_reserve::fill() {
  for (auto& each : held_)
    if (each < 0 && (each = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
      return false;
  return true;
}

bool descriptor_reserve::has_more() const {
  ensure(held_.front() >= 0, "spare descriptors are looked for while the reserve is full");
  std::array<int, 4> more;
  for (auto& each : more)
    each = ::fcntl(held_.front(), F_DUPFD_CLOEXEC, 0);
  for (auto each : more)
    if (each >= 0)
      ::close(each);
  return more.back() >= 0;
}

void descriptor_reserve::release() {
  for (auto& each : held_)
    if (each >= 0)
      ::close(std::exchange(each, -1));
}

} // namespace ringmaster
