#include "training/layers/layer.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ringmaster::training {

void set_numbers(precision as, std::span<const float> from, std::byte* to) {
  if (as == precision::float32)
    std::memcpy(to, from.data(), from.size_bytes());
  else
    std::ranges::copy(from, reinterpret_cast<double*>(to));
}

parameter part_of(parameter whole, shard tensor) {
  if (whole.tensor == cut::rows)
    whole.rows = block_of({}, whole.rows, tensor.count, tensor.index).count;
  if (whole.tensor == cut::columns)
    whole.columns = block_of({}, whole.columns, tensor.count, tensor.index).count;
  return whole;
}

caf::error layer::cannot_share(uint32_t ranks) const {
  for (auto& x : parameters()) {
    const auto among = x.tensor == cut::rows ? x.rows : x.columns;
    if (x.tensor != cut::replicated && among < ranks)
      return invalid(fmt::format("the {} {} of {} are too few for {} ranks", among,
                                 x.tensor == cut::rows ? "rows" : "columns", x.name, ranks));
  }
  return caf::none;
}

uint64_t layer::elements(shard tensor) const {
  uint64_t result = 0;
  for (auto& x : parameters())
    result += part_of(x, tensor).elements();
  return result;
}

uint64_t layer::replicated() const {
  uint64_t result = 0;
  for (auto& x : parameters())
    result += x.tensor == cut::replicated ? x.elements() : 0;
  return result;
}

} // namespace ringmaster::training
