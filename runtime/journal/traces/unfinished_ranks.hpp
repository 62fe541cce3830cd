#pragma once

#include "runtime/journal/record_filter.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// A rank's part of an operation that it never reported the end of, as nobody can who hangs or is dead.
struct unfinished_rank {
  enum class fate : uint8_t {
    hung, ///< It was given up on suspicion.
    died,
    left,   ///< Its node was shut down.
    running ///< The records end before it does.
  };

  operation_key operation;
  epoch_number epoch;
  uint32_t rank = 0;
  device_id device;
  fate how = fate::running;
  std::string cause;
  uint64_t started_ns = 0; ///< When the attempt began, or what the device did before it ended.
  uint64_t ended_ns = 0;   ///< When the device was given up; of one that is running, the time of the last record.
};

/// "hung", "died", "left", "running".
std::string to_string(unfinished_rank::fate x);

/// Of each device that is lost with operations in flight the one that it was at; of each that is still at one when the
/// records end, that one. Records are in the order in which they were written.
std::vector<unfinished_rank> unfinished_ranks(std::span<const proto::Record> records);

} // namespace ringmaster
