#include "training/computed/kept_values.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ringmaster::training {

namespace {

constexpr uint64_t alignment = 256;

} // namespace

value_store::value_store(std::span<std::byte> memory, uint64_t address)
  : memory_(memory), address_(address), free_(std::make_shared<range_allocator>(address, address + memory.size())) {
  ensure(address + memory.size() >= address, "a range of addresses does not wrap around");
}

caf::expected<block_pointer> value_store::make(uint64_t bytes, uint64_t used, bool stays) {
  ensure(used <= bytes, "the bytes in use are in the block");
  using enum range_allocator::side;
  TRY(address, free_->allocate(std::max<uint64_t>(bytes, 1), alignment, stays ? begin : end));
  ensure(*address >= address_ && *address - address_ + bytes <= memory_.size(), "a block is in the store's range");
  peak_ = std::max(peak_, free_->used());
  ensure(peak_ <= memory_.size(), "no more memory is in use than there is");
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

const block_pointer& value_store::at(uint64_t token) const {
  const auto found = held_.find(token);
  ensure(found != held_.end(), "the token of a value is in use");
  return found->second;
}

void value_store::replace(uint64_t token, block_pointer x) {
  const auto found = held_.find(token);
  ensure(found != held_.end() && x != nullptr, "a value that is replaced has a token and gets a block");
  found->second = std::move(x);
}

uint64_t value_store::hold(block_pointer x) {
  ensure(x != nullptr, "a value that is held has a block");
  held_.emplace(++tokens_, std::move(x));
  return tokens_;
}

caf::error kept_values::begin(uint64_t step) {
  if (step == step_ + 1 && !staged_.empty()) {
    kept_ = std::exchange(staged_, {});
    ++step_;
  } else {
    for (auto& [what, block] : restored_)
      kept_.erase(what);
  }
  restored_.clear();
  staged_.clear();
  check();
  if (step == step_)
    return caf::none;
  return invalid(fmt::format("step {} cannot start: this rank has the model as it was before step {}", step, step_));
}

block_pointer kept_values::find(const kept_part& what) const {
  auto i = kept_.find(what);
  return i == kept_.end() ? nullptr : i->second;
}

void kept_values::stage(const kept_part& what, block_pointer x) {
  ensure(x != nullptr, "a step makes a part in a block");
  staged_[what] = std::move(x);
}

void kept_values::restore(const kept_part& what, block_pointer x) {
  ensure(x != nullptr, "a restored part is in a block");
  ensure(find(what) == nullptr, "only a part that is missing is restored");
  kept_[what] = restored_[what] = std::move(x);
}

void kept_values::replace(const kept_part& what, block_pointer x) {
  ensure(kept_.contains(what), "a part that moves is kept");
  ensure(staged_.empty(), "parts move before the step makes any");
  kept_[what] = std::move(x);
}

void kept_values::check() const {
  ensure(restored_.empty() && staged_.empty(), "a step starts with nothing of an earlier attempt");
}

void kept_values::forget(uint64_t step) {
  step_ = step;
  kept_.clear();
  staged_.clear();
  restored_.clear();
}

} // namespace ringmaster::training
