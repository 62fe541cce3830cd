#include "runtime/memory/range_allocator.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

namespace ringmaster {

range_allocator::range_allocator(uint64_t begin, uint64_t end) : begin_(begin), end_(end) {
  ensure(begin <= end, "a memory's end is not below its beginning");
  if (begin != end)
    free_.emplace(begin, end);
}

std::optional<uint64_t> range_allocator::found_from_begin(uint64_t bytes, uint64_t alignment) const {
  for (const auto& [start, end] : free_) {
    const auto aligned = (start + (alignment - 1)) & ~(alignment - 1);
    const auto wrapped = aligned < start;
    if (!wrapped && aligned <= end && end - aligned >= bytes)
      return aligned;
  }
  return std::nullopt;
}

std::optional<uint64_t> range_allocator::found_from_end(uint64_t bytes, uint64_t alignment) const {
  for (auto block = free_.rbegin(); block != free_.rend(); ++block) {
    const auto [start, end] = *block;
    if (end - start < bytes)
      continue;
    if (const auto aligned = (end - bytes) & ~(alignment - 1); aligned >= start)
      return aligned;
  }
  return std::nullopt;
}

caf::expected<uint64_t> range_allocator::allocate(uint64_t bytes, uint64_t alignment, side from) {
  if (bytes == 0)
    return invalid("an allocation of 0 bytes; at least 1 is needed");
  if (!std::has_single_bit(alignment))
    return invalid(fmt::format("an alignment of {} bytes is no power of two", alignment));
  const auto found = from == side::begin ? found_from_begin(bytes, alignment) : found_from_end(bytes, alignment);
  if (!found)
    return make_error(bytes > end_ - begin_ ? errc::too_large : errc::out_of_memory,
                      fmt::format("out of memory: asked for {} bytes aligned to {}; {} of {} bytes are free, the "
                                  "largest block has {}",
                                  bytes, alignment, free_bytes(), end_ - begin_, largest()));
  ensure(*found >= begin_ && *found <= end_ && bytes <= end_ - *found, "an allocation lies within the memory");
  ensure((*found & (alignment - 1)) == 0, "an allocation is aligned");
  take(std::prev(free_.upper_bound(*found)), *found, *found + bytes);
  return *found;
}

void range_allocator::take(std::map<uint64_t, uint64_t>::iterator block, uint64_t start, uint64_t end) {
  const auto [block_start, block_end] = *block;
  ensure(block_start <= start && start < end && end <= block_end, "an allocation is taken from one free block");
  if (block_start == start)
    free_.erase(block);
  else
    block->second = start;
  if (end != block_end)
    free_.emplace(end, block_end);
  const auto [taken, is_new] = allocated_.emplace(start, end);
  ensure(is_new, "no two allocations start at one address");
  ensure(taken == allocated_.begin() || std::prev(taken)->second <= start, "no two allocations overlap");
  ensure(std::next(taken) == allocated_.end() || end <= std::next(taken)->first, "no two allocations overlap");
  used_ += end - start;
  ensure(used_ <= end_ - begin_, "no more is allocated than there is");
  ensure(free_.empty() == (used_ == end_ - begin_), "a memory without a free block is used up");
}

caf::error range_allocator::free(uint64_t address) {
  auto found = allocated_.upper_bound(address);
  if (found == allocated_.begin() || std::prev(found)->first != address) {
    if (found != allocated_.begin() && address < std::prev(found)->second)
      return invalid(fmt::format("cannot free {:#x}: it lies within the allocation [{:#x}, {:#x}); free that by "
                                 "its start",
                                 address, std::prev(found)->first, std::prev(found)->second));
    return invalid(fmt::format("cannot free {:#x}: no allocation starts there, or it was freed before", address));
  }
  auto [start, end] = *--found;
  allocated_.erase(found);
  ensure(used_ >= end - start, "no more is freed than was allocated");
  used_ -= end - start;
  auto next = free_.lower_bound(start);
  ensure(next == free_.end() || end <= next->first, "what is freed was not free");
  ensure(next == free_.begin() || std::prev(next)->second <= start, "what is freed was not free");
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->second == start)
    std::prev(next)->second = end;
  else
    free_.emplace_hint(next, start, end);
  ensure(allocated_.empty() == (used_ == 0), "a memory without an allocation is unused");
  return caf::none;
}

uint64_t range_allocator::largest() const noexcept {
  uint64_t bytes = 0;
  for (const auto& [start, end] : free_)
    bytes = std::max(bytes, end - start);
  return bytes;
}

} // namespace ringmaster
