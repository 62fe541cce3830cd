#include "runtime/operations/packing.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"

namespace ringmaster {

std::vector<packed_piece> packed_pieces(const proto::OperationPlan& plan, uint32_t rank, buffer_side side,
                                        uint64_t bytes) {
  const auto address_in = [&](auto& x) {
    const auto at = static_cast<int>(rank);
    return side == buffer_side::input ? x.input_addresses(at) : x.output_addresses(at);
  };
  if (bytes == 0)
    return {};
  if (plan.fused().empty())
    return {{0, address_in(plan), bytes}};
  auto element = size_of(plan.collective().datatype());
  const auto block_bytes = plan.collective().count() * element;
  std::vector<packed_piece> result;
  uint64_t before = 0; // of the block, what earlier ones take
  for (auto& x : plan.fused()) {
    auto own = x.count() * element;
    for (uint64_t block = 0; own > 0 && block * block_bytes < bytes; ++block)
      result.push_back({block * block_bytes + before, address_in(x) + block * own, own});
    before += own;
  }
  ensure(before == block_bytes, "the blocks of packed operations fill a block of the packed buffer");
  return result;
}

} // namespace ringmaster
