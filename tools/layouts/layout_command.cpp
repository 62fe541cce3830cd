#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/output_file.hpp"
#include "training/layouts/layout_picture.hpp"
#include "training/layouts/tensor_layout.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint32_t table_ranks_max = 64, grid_side_max = 16, shown_groups_max = 8, shown_members_max = 8;

std::string_view word_of(layer_cut x) {
  return x == layer_cut::columns ? "columns" : "rows";
}

std::string text_of(const range& x) {
  return x.count() == 1 ? std::to_string(x.begin) : fmt::format("{}-{}", x.begin, x.end - 1);
}

std::string shape_of(const layer_part& x) {
  return fmt::format("{}x{}", x.rows.count(), x.columns.count());
}

std::string data_text(const tensor_layout& layout, uint32_t rank) {
  return layout.samples() > 0 ? "samples " + text_of(layout.samples_of(rank))
                              : fmt::format("slice {} of {}", layout.sides().data_index(rank), layout.sides().data);
}

std::string text_of(const group& x) {
  if (x.stride == 1)
    return text_of(range{x.first, x.last() + 1});
  std::string result;
  for (uint32_t i = 0; i < std::min(x.count, shown_members_max); ++i)
    result += fmt::format("{}{}", i == 0 ? "" : " ", x.rank(i));
  return result + (x.count > shown_members_max ? fmt::format(" ... {}", x.last()) : "");
}

/// "0-3 | 4-7": `count` groups, whose first ranks are `stride` apart from 0.
template <class GroupOf>
std::string groups_text(uint32_t count, uint32_t stride, GroupOf group_of) {
  std::string result;
  for (uint32_t i = 0; i < std::min(count, shown_groups_max); ++i)
    result += (i == 0 ? "" : " | ") + text_of(group_of(i * stride));
  return result + (count > shown_groups_max ? fmt::format(" | ... {} in all", count) : "");
}

std::string grid_text(const tensor_layout& layout) {
  const auto& sides = layout.sides();
  std::string text(10, ' ');
  for (uint32_t tensor = 0; tensor < sides.tensor; ++tensor)
    text += fmt::format("  {:>9}", fmt::format("tensor {}", tensor));
  for (uint32_t data = 0; data < sides.data; ++data) {
    text += fmt::format("\n  {:<8}", fmt::format("data {}", data));
    for (uint32_t tensor = 0; tensor < sides.tensor; ++tensor)
      text += fmt::format("  {:>9}", fmt::format("rank {}", data * sides.tensor + tensor));
    text += "   " + data_text(layout, data * sides.tensor);
  }
  return text + "\n\n";
}

/// One rank's part of the layer: "columns 0-63".
std::string cut_text(const cut_layer& layer, const layer_part& part) {
  return fmt::format("{} {}", word_of(layer.cut), text_of(layer.cut == layer_cut::columns ? part.columns : part.rows));
}

std::string layers_text(const tensor_layout& layout) {
  size_t width = 5;
  for (auto& layer : layout.layers())
    width = std::max(width, layer.name.size());
  auto text = fmt::format("{:<{}}  {:>14}  {:<10}  {:>14}\n", "layer", width, "whole", "cut by", "of each rank");
  for (auto& layer : layout.layers())
    text += fmt::format("{:<{}}  {:>14}  {:<10}  {:>14}\n", layer.name, width,
                        fmt::format("{}x{}", layer.rows, layer.columns), word_of(layer.cut),
                        shape_of(layout.part_of(layer, 0)));
  return text + "\n";
}

std::string ranks_text(const tensor_layout& layout) {
  std::string text = "    rank   tensor     data\n";
  const auto shown = std::min(layout.ranks(), table_ranks_max);
  for (uint32_t rank = 0; rank < shown; ++rank) {
    text += fmt::format("{:>8} {:>8} {:>8}  {}", rank, layout.sides().tensor_index(rank),
                        layout.sides().data_index(rank), data_text(layout, rank));
    for (auto& layer : layout.layers()) {
      const auto part = layout.part_of(layer, rank);
      text += fmt::format("; {} {}, {}", layer.name, shape_of(part), cut_text(layer, part));
    }
    text += '\n';
  }
  return shown < layout.ranks()
           ? text + fmt::format("and {} more; --json has all\n", counted(layout.ranks() - shown, "rank"))
           : text;
}

json_value json_of(const range& x) {
  return json_value::array({x.begin, x.end});
}

template <class GroupOf>
json_value groups_json(uint32_t count, uint32_t stride, GroupOf group_of) {
  auto groups = json_value::array();
  for (uint32_t i = 0; i < count; ++i) {
    const auto x = group_of(i * stride);
    auto& group = groups.emplace_back(json_value::array());
    for (uint32_t j = 0; j < x.count; ++j)
      group.push_back(x.rank(j));
  }
  return groups;
}

json_value place_json(const tensor_layout& layout, uint32_t rank) {
  ensure(rank < layout.ranks(), "a place is of a rank of the layout");
  json_value place{{"rank", rank},
                   {"tensor_index", layout.sides().tensor_index(rank)},
                   {"data_index", layout.sides().data_index(rank)}};
  if (layout.samples() > 0)
    place["samples"] = json_of(layout.samples_of(rank));
  auto& layers = place["layers"] = json_value::array();
  for (auto& layer : layout.layers()) {
    const auto part = layout.part_of(layer, rank);
    layers.push_back({{"name", layer.name},
                      {"shape", {part.rows.count(), part.columns.count()}},
                      {"rows", json_of(part.rows)},
                      {"columns", json_of(part.columns)}});
  }
  return place;
}

/// A grid and a table, shortened for many ranks.
std::string text_of(const tensor_layout& layout) {
  const auto& sides = layout.sides();
  auto text = fmt::format("{}: {} by tensor x {} by data; rank = data index x {} + tensor index\n\n",
                          counted(layout.ranks(), "rank"), sides.tensor, sides.data, sides.tensor);
  if (std::max(sides.tensor, sides.data) <= grid_side_max)
    text += grid_text(layout);
  text += fmt::format("tensor groups, which share each layer:   {}\n",
                      groups_text(sides.data, sides.tensor, [&](auto rank) { return sides.tensor_group(rank); }));
  text += fmt::format("data groups, which have the same part:   {}\n\n",
                      groups_text(sides.tensor, 1, [&](auto rank) { return sides.data_group(rank); }));
  if (!layout.layers().empty())
    text += layers_text(layout);
  return text + ranks_text(layout);
}

/// One JSON object with every rank.
std::string json_of(const tensor_layout& layout) {
  const auto& sides = layout.sides();
  json_value json{{"ranks", layout.ranks()}, {"tensor", sides.tensor}, {"data", sides.data}};
  if (layout.samples() > 0)
    json["samples"] = layout.samples();
  json["tensor_groups"] = groups_json(sides.data, sides.tensor, [&](auto rank) { return sides.tensor_group(rank); });
  json["data_groups"] = groups_json(sides.tensor, 1, [&](auto rank) { return sides.data_group(rank); });
  auto& layers = json["layers"] = json_value::array();
  for (auto& layer : layout.layers())
    layers.push_back({{"name", layer.name}, {"shape", {layer.rows, layer.columns}}, {"cut", word_of(layer.cut)}});
  // One rank at a time: the tree of a large group would take gigabytes.
  auto text = json_text(json);
  text.back() = ',';
  text += "\"places\":[";
  for (uint32_t rank = 0; rank < layout.ranks(); ++rank)
    text += (rank == 0 ? "" : ",") + json_text(place_json(layout, rank));
  return text + "]}\n";
}

using training::tensor_layout;

struct layout_options {
  std::optional<uint32_t> ranks;
  uint32_t tensor = 1;
  std::vector<training::cut_layer> layers;
  uint64_t samples = 0;
  std::string svg;
  bool json = false;
};

class layout_call final : public command_call {
  void declare(option_table& table) override {
    auto& x = opts_;
    auto add_layer = [&x](const std::string& text) -> caf::error {
      TRY(layer, training::parse_layer(text));
      x.layers.push_back(std::move(*layer));
      return caf::none;
    };
    table.about(
      "Shows which rank has which part of each layer and of the data. T neighbours form a tensor group: they share "
      "every "
      "layer, and each group has a slice of the samples. Ranks with the same tensor index form a data group: they have "
      "the same part and sum its gradients. rank = data index x T + tensor index.");
    table.form("--ranks N --tensor T --layer NAME:INxOUT:columns|rows ... [options]");
    table.number("--ranks", x.ranks, 1, tensor_layout::ranks_max).says("N", "the world size, a multiple of T").needed();
    table.number("--tensor", x.tensor, 1, tensor_layout::ranks_max).says("T", "ranks that share each layer");
    table.value("--layer", add_layer)
      .says("LAYER",
            "its name, inputs x outputs, and which of its weight's sides is cut, such as hidden:768x256:columns; "
            "may be repeated, and may be followed by further layers")
      .many();
    table.positional("LAYER", add_layer).many();
    table.number("--samples", x.samples, 1)
      .says("N", "of the data, which is divided exactly")
      .otherwise("only which slice");
    table.file("--svg", x.svg).says("FILE", "writes an SVG picture to FILE instead of the text");
    table.flag("--json", x.json).says("one object with every rank");
    table.add_example("ringmaster layout --ranks 8 --tensor 4 --layer hidden:768x256:columns --layer out:256x10:rows",
                      "two layers over 4 ranks each, two slices of the data");
  }

  caf::error check() override {
    if (!opts_.ranks)
      return invalid("it takes --ranks N; see ringmaster layout --help");
    if (opts_.json && !opts_.svg.empty())
      return invalid("it takes one of --json and --svg FILE");
    TRY(made, tensor_layout::of(*opts_.ranks, opts_.tensor, std::move(opts_.layers), opts_.samples));
    layout_ = std::move(*made);
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    if (opts_.svg.empty()) {
      fmt::print(to.out, "{}", opts_.json ? json_of(*layout_) : text_of(*layout_));
      return exit_ok;
    }
    TRY(picture, training::picture_of(*layout_));
    RETURN_ERROR(write_output_file(opts_.svg, *picture, "the picture"));
    fmt::print(to.out, "Wrote {}.\n", opts_.svg);
    return exit_ok;
  }

  layout_options opts_;
  std::optional<tensor_layout> layout_;
};

} // namespace

tool_command layout_command() {
  return tool_command::of<layout_call>("layout", "which rank has which part of each layer and of the data");
}

} // namespace ringmaster
