#pragma once

#include "runtime/memory/device_memory.hpp"

#include <cstdint>
#include <utility>

namespace ringmaster {

/// Sizes of a rank's buffers in one walk, and the scratch that the walk has allocated.
struct walk_buffers {
  uint64_t element_bytes = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t expected = 0; ///< Bytes of the output, or of its shadow, whose memory is allocated by the system.
  uint64_t shadow = 0;   ///< Address in the scratch area, of what becomes the output; 0: none.
  uint64_t scratch = 0;
  uint64_t staged = 0; ///< The input times the rank's factor, scaled, and packed.

  bool has_scratch() const { return shadow != 0 || scratch != 0 || staged != 0; }
  void free(device_memory& memory) {
    for (auto address : {&shadow, &scratch, &staged})
      if (*address != 0)
        memory.free_scratch(std::exchange(*address, 0));
  }
};

} // namespace ringmaster
