#include "messages/wire_ids.hpp"

#include <fmt/format.h>

namespace ringmaster {

std::string text_of(const gpu_sim::DeviceMetadata& x) {
  return fmt::format("device 0x{:x}{}{}", id_of(x), x.place().empty() ? "" : ", ", x.place());
}

std::string place_text(const std::string& name, const std::string& hostname, uint64_t pid) {
  return fmt::format("{}{}{}, pid {}", name, hostname.empty() ? "" : " on ", hostname, pid);
}

} // namespace ringmaster
