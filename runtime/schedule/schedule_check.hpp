#pragma once

#include "runtime/schedule/collective.hpp"

#include <caf/error.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// Elements that a rank's input and output have. The scratch is the schedule's own.
struct buffer_counts {
  uint64_t input = 0;
  uint64_t output = 0;
};

/// A step, by its place in its rank's schedule.
struct step_ref {
  uint32_t rank = 0;
  uint32_t index = 0;
};

inline bool writes(const step& x) {
  return x.what != action::send;
}
inline bool reads_own(const step& x) {
  return x.what != action::recv;
}
inline bool receives(const step& x) {
  return x.what == action::recv || x.what == action::recv_reduce;
}
inline bool is_local(const step& x) {
  return x.what == action::copy || x.what == action::reduce || x.what == action::fold;
}

/// "output[2, 4)"
std::string text_of(const block_range& x);
/// "recv_reduce of output[2, 4) from rank 1"
std::string text_of(const step& x);
/// "rank 0, round 3, step 7 (send of output[2, 4) to rank 1)": the subject of every fault of a step.
std::string place_of(uint32_t rank, size_t index, const step& x);

/// Checks the schedule of one rank by itself: the order of its rounds, its peers, the bounds and sizes of its ranges,
/// what it may not write, and that no range is written while another step of the same round may read or write it.
/// Errors: invalid_argument, for the first fault, with rank, round and step.
caf::error check_schedule(uint32_t rank, uint32_t world_size, const schedule& what, const buffer_counts& counts);

} // namespace ringmaster
