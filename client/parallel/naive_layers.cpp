#include "client/parallel/naive_layers.hpp"

#include <algorithm>

namespace ringmaster::parallel {

namespace {

/// Ranks send and get blocks that lie together; along the last axis theirs lie between the others'.
caf::expected<tensor> all_gather_last_axis(tensor_group& over, const tensor& x) {
  auto blocks = over.all_gather(x.values());
  if (!blocks)
    return std::move(blocks.error());
  const auto each = x.columns();
  tensor result{with_columns(x.shape(), each * over.size())};
  auto from = blocks->begin();
  for (uint32_t rank = 0; rank < over.size(); ++rank)
    for (uint64_t i = 0; i < x.rows(); ++i, from += static_cast<ptrdiff_t>(each))
      std::copy_n(from, each, result.row(i) + rank * each);
  return result;
}

} // namespace

caf::expected<tensor> gather_input(tensor_group& over, const tensor& x) {
  return all_gather_last_axis(over, x);
}

caf::expected<tensor> gather_output(tensor_group& over, const tensor& y) {
  return all_gather_last_axis(over, y);
}

caf::expected<tensor> slice_output_gradient(const tensor_group& over, const tensor& by_y) {
  return part_of_last_axis(by_y, over.rank(), over.size());
}

caf::expected<tensor> reduce_input_gradient(tensor_group& over, const tensor& by_x) {
  std::vector<float> blocks;
  blocks.reserve(by_x.elements());
  for (uint32_t rank = 0; rank < over.size(); ++rank) {
    auto part = part_of_last_axis(by_x, rank, over.size());
    if (!part)
      return std::move(part.error());
    blocks.insert(blocks.end(), part->values().begin(), part->values().end());
  }
  auto mine = over.reduce_scatter(blocks);
  if (!mine)
    return std::move(mine.error());
  return tensor::of(with_columns(by_x.shape(), by_x.columns() / over.size()), std::move(*mine));
}

} // namespace ringmaster::parallel
