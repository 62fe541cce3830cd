#pragma once

#include "actors/streams/rank_plan.hpp"
#include "messages/transfer.hpp"
#include "runtime/memory/device_memory.hpp"
#include "runtime/operations/packing.hpp"
#include "runtime/schedule/schedule_run.hpp"

#include <caf/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ringmaster {

/// A rank's buffers in one walk: its input and output, and the scratch that the walk has allocated.
///
/// A *shadow* takes the place of an output that would destroy the input; a *staged* input is a copy that takes the
/// input's place.
class walk_buffers {
public:
  /// A walk of this plan starts. Errors: an input or an output is not in the memory.
  caf::error lay_out(const rank_plan& plan, std::shared_ptr<device_memory> memory);
  /// Allocates what the rank's schedule needs. Errors: too little scratch.
  caf::error allocate(const schedule_run& run);
  caf::error allocate_staged() { return reserve(staged_, input_bytes_); }
  bool has_scratch() const { return shadow_ != 0 || scratch_ != 0 || staged_ != 0; }
  void free();
  /// The shadow, which the caller frees; 0: none.
  uint64_t take_shadow() { return std::exchange(shadow_, 0); }

  /// The system has allocated all memory that will be written.
  bool all_is_expected() const { return expected_ >= output_bytes_; }
  /// The system allocates the next part of it. Returns whether there is more: it takes long.
  bool expect_more();

  const rank_plan& plan() const { return plan_; }
  uint64_t input_bytes() const { return input_bytes_; }
  uint64_t output_bytes() const { return output_bytes_; }
  uint64_t bytes_of(const block_range& range) const { return range.count * element_bytes_; }
  uint64_t address_of(const block_range& range) const;
  std::byte* bytes_at(const block_range& range) const;
  device_window window_of(const block_range& range) const { return window_at(address_of(range), bytes_of(range)); }
  device_window window_at(uint64_t address, uint64_t bytes) const { return {memory_->id(), address, bytes, memory_}; }
  std::vector<packed_piece> inputs() const {
    return packed_pieces(*plan_, plan_.rank(), buffer_side::input, input_bytes_);
  }
  /// Where a piece of the input is staged.
  std::byte* staged_at(const packed_piece& x) const { return memory_->at_runtime(staged_ + x.offset, x.bytes)->data(); }

private:
  caf::error reserve(uint64_t& address, uint64_t bytes);
  bool wants_shadow() const;
  caf::error no_room(const caf::error& problem, const schedule_run& run) const;

  rank_plan plan_;
  std::shared_ptr<device_memory> memory_;
  uint64_t element_bytes_ = 0;
  uint64_t input_bytes_ = 0;
  uint64_t output_bytes_ = 0;
  uint64_t expected_ = 0; ///< Bytes of the output, or of its shadow, whose memory is allocated by the system.
  uint64_t shadow_ = 0;   ///< Address in the scratch area, of what becomes the output; 0: none.
  uint64_t scratch_ = 0;
  uint64_t staged_ = 0; ///< The input times the rank's factor, scaled, and packed.
};

} // namespace ringmaster
