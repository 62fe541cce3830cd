#include "client/parallel/placement.hpp"

#include "messages/errc.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster::parallel {

caf::expected<tensor> samples_of(const tensor& x, const training::tensor_layout& layout, uint32_t rank) {
  if (x.shape().front() != layout.samples())
    return invalid(fmt::format("{} has {} samples, its first axis, and the layout is of {}", x.shape_text(),
                               x.shape().front(), layout.samples()));
  return cut_first_axis(x, layout.samples_of(rank));
}

caf::expected<tensor> take_samples(const tensor& x, std::span<const uint32_t> samples) {
  auto shape = x.shape();
  const auto count = shape.front(), each = count == 0 ? 0 : x.elements() / count;
  shape.front() = samples.size();
  tensor result{std::move(shape)};
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] >= count)
      return make_error(errc::out_of_range, fmt::format("there is no sample {} in {}: its first axis has {}",
                                                        samples[i], x.shape_text(), count));
    std::ranges::copy(x.values().subspan(samples[i] * each, each), result.values().subspan(i * each).begin());
  }
  return result;
}

caf::expected<tensor> parameter_of(const tensor& weight, const training::cut_layer& layer,
                                   const training::tensor_layout& layout, uint32_t rank) {
  if (weight.shape() != std::vector{layer.rows, layer.columns})
    return invalid(fmt::format("layer \"{}\" is {}x{}, and the weight {}", layer.name, layer.rows, layer.columns,
                               weight.shape_text()));
  const auto part = layout.part_of(layer, rank);
  auto rows = cut_first_axis(weight, part.rows);
  return rows ? cut_last_axis(*rows, part.columns) : std::move(rows);
}

caf::expected<rank_groups> split_world(rank_communicator& world, const training::tensor_layout& layout,
                                       caf::timespan limit) {
  if (world.size() != layout.ranks())
    return invalid(fmt::format("the layout is of {} ranks, and the communicator has {}", layout.ranks(), world.size()));
  const auto& sides = layout.sides();
  const auto tensor_index = sides.tensor_index(world.rank()), data_index = sides.data_index(world.rank());
  auto tensor = world.split(static_cast<int32_t>(data_index), tensor_index, limit);
  if (!tensor)
    return std::move(tensor.error());
  auto data = world.split(static_cast<int32_t>(tensor_index), data_index, limit);
  if (!data)
    return std::move(data.error());
  return rank_groups{std::move(**tensor), std::move(**data)};
}

} // namespace ringmaster::parallel
