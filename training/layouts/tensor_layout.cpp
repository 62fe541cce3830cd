#include "training/layouts/tensor_layout.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

caf::error check_layer(const cut_layer& layer, uint32_t tensor) {
  const auto by_columns = layer.cut == layer_cut::columns;
  const auto side = by_columns ? layer.columns : layer.rows;
  if (side % tensor == 0)
    return caf::none;
  return invalid(fmt::format("layer {}, {}x{}, cannot be cut by {} over {}: {} is no multiple of {}", layer.name,
                             layer.rows, layer.columns, by_columns ? "columns" : "rows", counted(tensor, "rank"), side,
                             tensor));
}

} // namespace

caf::expected<cut_layer> parse_layer(std::string_view text) {
  constexpr uint64_t side_max = uint64_t{1} << 40;
  const auto last = text.rfind(':'), middle = last == text.npos || last == 0 ? text.npos : text.rfind(':', last - 1);
  const auto shape = middle == text.npos ? "" : text.substr(middle + 1, last - middle - 1);
  const auto by = shape.find('x');
  if (middle == text.npos || middle == 0 || by == shape.npos)
    return invalid(fmt::format(
      "\"{}\" is no layer: write NAME:INxOUT:columns or NAME:INxOUT:rows, such as hidden:768x256:columns", text));
  auto rows = parse_whole(shape.substr(0, by), 1, side_max), columns = parse_whole(shape.substr(by + 1), 1, side_max);
  for (auto* side : {&rows, &columns})
    if (!*side)
      return invalid(fmt::format("layer {}: {}", text, render(side->error())));
  const auto cut = text.substr(last + 1);
  if (cut != "columns" && cut != "rows")
    return invalid(fmt::format("layer {}: what is cut must be columns or rows, and is \"{}\"", text, cut));
  return cut_layer{std::string{text.substr(0, middle)}, *rows, *columns,
                   cut == "columns" ? layer_cut::columns : layer_cut::rows};
}

caf::expected<tensor_layout> tensor_layout::of(uint32_t ranks, uint32_t tensor, std::vector<cut_layer> layers,
                                               uint64_t samples) {
  if (ranks == 0 || ranks > ranks_max || tensor == 0 || ranks % tensor != 0)
    return invalid(fmt::format("{} cannot share layers {} by {}: there must be a multiple of {}, {} at most",
                               counted(ranks, "rank"), tensor, tensor, tensor, ranks_max));
  for (size_t i = 0; i < layers.size(); ++i) {
    RETURN_ERROR(check_layer(layers[i], tensor));
    if (std::any_of(layers.begin(), layers.begin() + static_cast<ptrdiff_t>(i),
                    [&](auto& x) { return x.name == layers[i].name; }))
      return invalid(fmt::format("there are two layers {}: give each a name of its own", layers[i].name));
  }
  const mesh sides{.tensor = tensor, .data = ranks / tensor};
  if (samples > 0 && samples < sides.data)
    return invalid(fmt::format("{} cannot be cut into {}, one for each data index", counted(samples, "sample"),
                               counted(sides.data, "slice")));
  return tensor_layout{sides, std::move(layers), samples};
}

layer_part tensor_layout::part_of(const cut_layer& layer, uint32_t rank) const {
  layer_part result{{0, layer.rows}, {0, layer.columns}};
  auto& cut = layer.cut == layer_cut::columns ? result.columns : result.rows;
  const auto each = cut.end / sides_.tensor;
  cut = {sides_.tensor_index(rank) * each, (sides_.tensor_index(rank) + 1) * each};
  return result;
}

range tensor_layout::samples_of(uint32_t rank) const {
  const auto slice = block_of({}, samples_, sides_.data, sides_.data_index(rank));
  return {slice.offset, slice.offset + slice.count};
}

} // namespace ringmaster::training
