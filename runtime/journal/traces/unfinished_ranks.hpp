#pragma once

#include "runtime/journal/record_filter.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// A rank's part of an operation whose end it never reported: it hangs, or its device is lost.
struct unfinished_rank {
  enum class fate : uint8_t {
    hung, ///< Its device was ended on suspicion.
    died,
    left,   ///< Its node was shut down.
    running ///< It has not ended when the records end.
  };

  operation_key operation;
  epoch_number epoch;
  uint32_t rank = 0;
  device_id device;
  fate how = fate::running;
  std::string cause;
  uint64_t started_ns = 0; ///< When the attempt started, or when the device ended its previous work.
  uint64_t ended_ns = 0;   ///< When the device was lost; for a running one the time of the last record.
};

/// "hung", "died", "left", "running".
std::string to_string(unfinished_rank::fate x);

/// For each device that was lost with operations in flight, and for each that has some when the records end: the
/// operation that it was executing. Records are in the order in which they were written.
std::vector<unfinished_rank> unfinished_ranks(std::span<const proto::Record> records);

} // namespace ringmaster
