#include "client/parallel/zero_3.hpp"

#include "messages/errc.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::parallel {

uint64_t shard_elements(uint64_t elements, uint32_t ranks) {
  return elements / ranks + (elements % ranks != 0);
}

caf::expected<tensor> shard_of(const tensor& whole, uint32_t rank, uint32_t ranks) {
  if (rank >= ranks)
    return invalid(fmt::format("there is no shard {} of {}: they are counted from 0", rank, ranks));
  tensor result{{shard_elements(whole.elements(), ranks)}};
  const auto begin = std::min(rank * result.elements(), whole.elements());
  const auto count = std::min(result.elements(), whole.elements() - begin);
  std::ranges::copy(whole.values().subspan(begin, count), result.values().begin());
  return result;
}

caf::expected<tensor> gather_parameter(tensor_group& over, const tensor& shard, std::vector<uint64_t> shape) {
  const auto right = shard_elements(elements_of(shape), over.size());
  if (shape.empty() || shard.elements() != right)
    return invalid(fmt::format("a shard of [{}] on {} ranks has {} numbers, not {}", fmt::join(shape, " x "),
                               over.size(), shape.empty() ? 0 : right, shard.elements()));
  auto all = over.all_gather(shard.values());
  if (!all)
    return std::move(all.error());
  tensor result{std::move(shape)};
  std::copy_n(all->begin(), result.elements(), result.values().begin());
  return result;
}

caf::expected<tensor> reduce_gradient(tensor_group& over, const tensor& gradient) {
  const auto each = shard_elements(gradient.elements(), over.size());
  std::vector<float> padded(gradient.values().begin(), gradient.values().end());
  padded.resize(each * over.size());
  auto mine = over.reduce_scatter(padded);
  if (!mine)
    return std::move(mine.error());
  return tensor::of({each}, std::move(*mine));
}

} // namespace ringmaster::parallel
