#include "runtime/reduction/block_sink.hpp"

#include "runtime/reduction/reduction.hpp"

#include <cstring>

namespace ringmaster {

void block_sink::put(uint64_t offset, std::span<const std::byte> bytes) const {
  if (operand == nullptr && (factor != 1 || scale != 1)) {
    const auto count = bytes.size() / size_of(datatype);
    ringmaster::scale(datatype, factor != 1 ? factor : scale, bytes.data(), out + offset, count);
    if (factor != 1 && scale != 1) // the product is of the datatype
      ringmaster::scale(datatype, scale, out + offset, out + offset, count);
    return;
  }
  if (bytes.empty() || (operand == nullptr && out + offset == bytes.data()))
    return; // a block that is in its place already
  if (operand != nullptr && (scale != 1 || operand_scale != 1))
    combine->add_scaled({bytes.data(), operand + offset, scale, operand_scale}, out + offset,
                        bytes.size() / size_of(combine->datatype()));
  else if (operand == nullptr)
    std::memcpy(out + offset, bytes.data(), bytes.size());
  else
    (*combine)(bytes.data(), operand + offset, out + offset, bytes.size() / size_of(combine->datatype()));
}

} // namespace ringmaster
