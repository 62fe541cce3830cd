#include "training/computed/value_store.hpp"

#include <algorithm>
#include <cstring>

namespace ringmaster::training {

namespace {

constexpr uint64_t alignment = 256;

} // namespace

value_store::value_store(std::span<std::byte> memory, uint64_t address)
  : memory_(memory), address_(address), free_(std::make_shared<range_allocator>(address, address + memory.size())) {}

caf::expected<block_pointer> value_store::make(uint64_t bytes, uint64_t used, bool stays) {
  using enum range_allocator::side;
  auto address = free_->allocate(std::max<uint64_t>(bytes, 1), alignment, stays ? begin : end);
  if (!address)
    return address.error();
  peak_ = std::max(peak_, free_->used());
  const auto at = *address - address_;
  auto& reached = stays ? from_begin_ : from_end_;
  const auto so_far = stays ? at + bytes : memory_.size() - at;
  reached = std::max(reached, (so_far + alignment - 1) / alignment * alignment);
  auto* data = memory_.data() + at;
  std::memset(data + used, 0, bytes - used);
  auto give_back = [all = free_](value_block* x) {
    all->free(x->address);
    delete x;
  };
  return block_pointer{new value_block{data, *address, bytes, ++blocks_, {}}, give_back};
}

uint64_t value_store::bytes_needed() const {
  return std::min<uint64_t>(from_begin_ + from_end_, memory_.size());
}

block_pointer value_store::make_on_host(uint64_t bytes) {
  auto give_back = [](value_block* x) {
    delete[] x->data;
    delete x;
  };
  return {new value_block{new std::byte[bytes], 0, bytes, ++blocks_, {}}, give_back};
}

uint64_t value_store::hold(block_pointer x) {
  held_.emplace(++tokens_, std::move(x));
  return tokens_;
}

} // namespace ringmaster::training
