#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "tools/console/output_file.hpp"
#include "tools/layouts/layout_text.hpp"
#include "training/layouts/layout_picture.hpp"

#include <fmt/format.h>

#include <optional>

namespace ringmaster {

namespace {

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
