#include "runtime/reduction/reduction_tiles.hpp"

#include "runtime/reduction/bulk_copy.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace ringmaster {

namespace {

// Bytes of the wide type. Small, so that many inputs are read line by line in turn, as the processor's prefetching
// likes it: with eight inputs 4096 takes 1.05 of the time of 2048 on Zen 4, and less costs as much in calls.
constexpr size_t tile_bytes = 2048;

/// Elements of the wide type, or what they are encoded to.
struct alignas(cache_line_bytes) tile {
  std::array<std::byte, tile_bytes> bytes;
  std::byte* data() { return bytes.data(); }
};

constexpr size_t most_inputs = 8; ///< at once

/// Calls body(first, count) for every tile of `count` elements; the first one has `head` if that is more than none.
template <class Body>
void for_each_tile(const datatype_kernels& kernels, uint64_t count, uint64_t head, Body&& body) {
  const uint64_t whole = tile_bytes / kernels.wide_bytes;
  for (uint64_t first = 0, n = head == 0 ? whole : head; first < count; first += n, n = whole)
    body(first, std::min(n, count - first));
}

struct accumulation_step {
  accumulation_kernel kernel;
  size_t inputs;
};

/// The step that takes the most of so many inputs.
accumulation_step next_step(const operation_kernels& operation, size_t inputs, bool begun) {
  if (begun)
    return inputs >= 4   ? accumulation_step{operation.extend_4, 4}
           : inputs >= 2 ? accumulation_step{operation.extend_2, 2}
                         : accumulation_step{operation.extend_1, 1};
  return inputs >= 8   ? accumulation_step{operation.begin_8, 8}
         : inputs >= 4 ? accumulation_step{operation.begin_4, 4}
                       : accumulation_step{operation.begin_2, 2};
}

/// Accumulates `inputs` from element `first` on, beginning with them or extending what is in the tile. The last step
/// writes to `out`, which may be the tile.
void accumulate(const operation_kernels& operation, std::span<const std::byte* const> inputs, uint64_t first,
                bool begun, tile& accumulated, std::byte* out, uint64_t count) {
  for (; !inputs.empty(); begun = true) {
    const auto step = next_step(operation, inputs.size(), begun);
    const auto to = step.inputs == inputs.size() ? out : accumulated.data();
    step.kernel(inputs.data(), first, accumulated.data(), to, count);
    inputs = inputs.subspan(step.inputs);
  }
}

/// The same for inputs that have to be decoded.
void decode_and_accumulate(const reduction_kernels& kernels, std::span<const std::byte* const> inputs, uint64_t first,
                           tile& accumulated, uint64_t count) {
  std::array<tile, most_inputs> decoded;
  std::array<const std::byte*, most_inputs> tiles;
  for (bool begun = false; !inputs.empty(); begun = true) {
    const size_t n = std::min(inputs.size(), most_inputs);
    for (size_t i = 0; i < n; ++i) {
      kernels.datatype.decode(inputs[i] + first * kernels.datatype.element_bytes, decoded[i].data(), count);
      tiles[i] = decoded[i].data();
    }
    accumulate(kernels.operation, {tiles.data(), n}, 0, begun, accumulated, accumulated.data(), count);
    inputs = inputs.subspan(n);
  }
}

/// reduce_chain of a tile; `out` is where its first element goes.
void reduce_tile(const reduction_kernels& kernels, std::span<const std::byte* const> inputs, uint64_t first,
                 std::byte* out, uint64_t count, uint32_t divisor) {
  const auto& type = kernels.datatype;
  tile accumulated;
  const bool wide = type.decode != nullptr;
  if (wide)
    decode_and_accumulate(kernels, inputs, first, accumulated, count);
  else
    accumulate(kernels.operation, inputs, first, false, accumulated, divisor == 0 ? out : accumulated.data(), count);
  if (divisor != 0)
    type.divide(accumulated.data(), wide ? accumulated.data() : out, count, divisor);
  if (wide)
    type.encode(accumulated.data(), out, count);
}

/// The elements before the first line of the caches that begins in `out`; 0, too, where no element begins with a line.
uint64_t elements_to_line(const std::byte* out, size_t element_bytes) {
  const size_t to_line = -reinterpret_cast<uintptr_t>(out) % cache_line_bytes;
  return to_line % element_bytes == 0 ? to_line / element_bytes : 0;
}

} // namespace

void reduce_pair(const reduction_kernels& kernels, const std::byte* a, const std::byte* b, std::byte* out,
                 uint64_t count) {
  const auto& type = kernels.datatype;
  if (type.decode == nullptr)
    return kernels.operation.pair(a, b, out, count);
  for_each_tile(type, count, 0, [&](uint64_t first, uint64_t n) {
    tile left, right;
    type.decode(a + first * type.element_bytes, left.data(), n);
    type.decode(b + first * type.element_bytes, right.data(), n);
    kernels.operation.pair(left.data(), right.data(), left.data(), n);
    type.encode(left.data(), out + first * type.element_bytes, n);
  });
}

void reduce_chain(const reduction_kernels& kernels, std::span<const std::byte* const> inputs, std::byte* out,
                  uint64_t count, const chain_options& options) {
  assert(inputs.size() >= 2);
  const auto& type = kernels.datatype;
  // Lines are streamed whole: every tile but the first begins with one.
  const uint64_t head = options.streaming ? elements_to_line(out, type.element_bytes) : 0;
  for_each_tile(type, count, head, [&](uint64_t first, uint64_t n) {
    const auto to = out + first * type.element_bytes;
    tile result;
    reduce_tile(kernels, inputs, first, options.streaming ? result.data() : to, n, options.divisor);
    if (options.streaming)
      stream_bytes(to, result.data(), n * type.element_bytes);
  });
  if (options.streaming)
    finish_streaming();
}

void divide_values(const datatype_kernels& kernels, std::byte* values, uint64_t count, uint32_t divisor) {
  if (kernels.decode == nullptr)
    return kernels.divide(values, values, count, divisor);
  for_each_tile(kernels, count, 0, [&](uint64_t first, uint64_t n) {
    tile decoded;
    kernels.decode(values + first * kernels.element_bytes, decoded.data(), n);
    kernels.divide(decoded.data(), decoded.data(), n, divisor);
    kernels.encode(decoded.data(), values + first * kernels.element_bytes, n);
  });
}

void scale_values(const datatype_kernels& kernels, const std::byte* factor, const std::byte* in, std::byte* out,
                  uint64_t count) {
  if (kernels.decode == nullptr)
    return kernels.scale(in, out, count, factor);
  tile wide_factor;
  kernels.decode(factor, wide_factor.data(), 1);
  for_each_tile(kernels, count, 0, [&](uint64_t first, uint64_t n) {
    tile decoded;
    kernels.decode(in + first * kernels.element_bytes, decoded.data(), n);
    kernels.scale(decoded.data(), decoded.data(), n, wide_factor.data());
    kernels.encode(decoded.data(), out + first * kernels.element_bytes, n);
  });
}

} // namespace ringmaster
