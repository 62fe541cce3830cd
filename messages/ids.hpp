#pragma once

#include <ringmaster/ids.hpp>

#include <fmt/core.h>

/// Formatted as its number is: "device 0x{:x}".
template <class Tag>
struct fmt::formatter<ringmaster::strong_id<Tag>> : fmt::formatter<uint64_t> {
  template <class Context>
  auto format(ringmaster::strong_id<Tag> x, Context& context) const {
    return fmt::formatter<uint64_t>::format(x.value, context);
  }
};
