// Where libtorch has the numbers of its tensors from.
#include "training/libtorch/libtorch_calls.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace ringmaster::training {

namespace {

/// By malloc, behind a gap in which the block's begin is kept. libtorch's own asks glibc for aligned blocks, of which
/// glibc before 2.38 finds none again that have been freed (its bug 14581): a training took new memory for activations
/// in each step, and grew by as much until it ended.
class tensor_memory final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) const override {
    constexpr size_t alignment = 64; // as libtorch's own
    if (bytes == 0)
      return {nullptr, c10::Device{c10::kCPU}};
    auto* block = bytes > SIZE_MAX - alignment ? nullptr : static_cast<std::byte*>(std::malloc(bytes + alignment));
    TORCH_CHECK(block != nullptr, "no memory for a tensor of ", bytes, " bytes");
    auto* data = block + alignment - reinterpret_cast<uintptr_t>(block) % alignment; // 16 bytes on, or more
    std::memcpy(data - sizeof block, &block, sizeof block);
    return {data, data, &release, c10::Device{c10::kCPU}};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

private:
  static void release(void* data) {
    if (data == nullptr)
      return;
    void* block = nullptr;
    std::memcpy(&block, static_cast<std::byte*>(data) - sizeof block, sizeof block);
    std::free(block);
  }
};

} // namespace

void use_own_tensor_memory() {
  static tensor_memory memory;
  if (c10::GetAllocator(c10::kCPU) == c10::GetDefaultCPUAllocator()) // and not one of the program's own
    c10::SetAllocator(c10::kCPU, &memory, 1);
}

} // namespace ringmaster::training
