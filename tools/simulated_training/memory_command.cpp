#include "tools/options/commands.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/console/page_format.hpp"
#include "tools/simulated_training/transformer_options.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster {

namespace {

using namespace training;

struct memory_options {
  transformer_options transformer;
  std::optional<uint32_t> layers;
  std::optional<double> parameters;
  uint32_t ranks = 64, tensor = 1, micro_batch = 1;
  bool json = false;
  language_model trained;

  /// Only a model has layers; a bare number of parameters does not.
  bool has_activations() const { return !parameters || !transformer.given().empty() || layers; }
};

caf::expected<double> parse_parameters(const std::string& text) {
  const auto x = decimal_in(text);
  if (!x || !(*x >= 1) || *x > 1e18)
    return invalid(fmt::format("\"{}\" is not a number of parameters, such as 7.5e9", text));
  return *x;
}

struct activation_row {
  recomputation again;
  bool sequence_parallel;
};
constexpr activation_row activation_rows[] = {
  {.again = recomputation::none, .sequence_parallel = false},
  {.again = recomputation::none, .sequence_parallel = true},
  {.again = recomputation::selective, .sequence_parallel = false},
  {.again = recomputation::selective, .sequence_parallel = true},
  {.again = recomputation::full, .sequence_parallel = false},
};

/// The attention that the published formulas of the model assume.
attention_kernel attention_of(const memory_options& x) {
  return x.trained.dropouts ? attention_kernel::unfused : attention_kernel::flash;
}

double bytes_of(const memory_options& x, const activation_row& row) {
  training_setting how;
  how.tp = x.tensor;
  how.sequence_parallel = row.sequence_parallel;
  how.again = row.again;
  how.computed_in = x.transformer.computed_in;
  how.attention = attention_of(x);
  return activation_bytes(x.trained, x.micro_batch, how, {x.trained.experts.count > 0, false});
}

std::string text_of(const memory_options& x, double parameters, const page_format& page) {
  auto text = page.line(fmt::format("{:.4g} billion parameters on each of {}{}", parameters / giga,
                                    counted(x.ranks, "data-parallel rank"),
                                    x.tensor > 1 ? fmt::format(", in {} tensor-parallel shares", x.tensor) : ""));
  text_table stages{{right_column("ZeRO"), right_column("B/parameter"), right_column("GB")}};
  for (uint32_t stage = 0; stage <= 3; ++stage)
    stages.add_row({fmt::to_string(stage), fmt::format("{:.4f}", zero_bytes(stage, x.ranks)),
                    fmt::format("{:.1f}", zero_bytes(stage, x.ranks) * parameters / x.tensor / giga)});
  text += stages.text(page.table_columns(), "");
  if (!x.has_activations())
    return text;
  text += "\n"
          + page.line(fmt::format("activations of a layer of {}: micro-batch {}, sequence {}, TP {}, {}",
                                  x.trained.name, x.micro_batch, x.trained.sequence, x.tensor,
                                  attention_of(x) == attention_kernel::flash ? "scores in tiles" : "scores in memory"));
  text_table layers{
    {left_column("recompute"), left_column("sequence parallel"), right_column("MB"), right_column("GB, all layers")}};
  for (auto& row : activation_rows)
    layers.add_row({std::string{name_of(row.again)}, row.sequence_parallel ? "yes" : "no",
                    fmt::format("{:.2f}", bytes_of(x, row) / 1e6),
                    fmt::format("{:.2f}", bytes_of(x, row) * x.trained.layers / giga)});
  return text + layers.text(page.table_columns(), "");
}

std::string json_of(const memory_options& x, double parameters) {
  json_value json{{"model", x.has_activations() ? x.trained.name : ""},
                  {"parameters", parameters},
                  {"ranks", x.ranks},
                  {"zero_bytes", json_value::array()}};
  for (uint32_t stage = 0; stage <= 3; ++stage)
    json["zero_bytes"].push_back(zero_bytes(stage, x.ranks) * parameters / x.tensor);
  if (x.has_activations())
    json["attention"] = name_of(attention_of(x));
  auto& activations = json["layer_activations"] = json_value::array();
  for (auto& row : x.has_activations() ? std::span{activation_rows} : std::span<const activation_row>{})
    activations.push_back(
      {{"recompute", name_of(row.again)}, {"sequence_parallel", row.sequence_parallel}, {"bytes", bytes_of(x, row)}});
  return json_text(json) + "\n";
}

class memory_call final : public command_call {
  void declare(option_table& table) override {
    auto& x = opts_;
    table.about("What a GPU holds of a model in training: weights, gradients and optimizer states in ZeRO's stages "
                "(Rajbhandari et al. 2020, mixed precision with Adam), and a transformer layer's activations "
                "(Korthikanti et al. 2022, 2 bytes an element).");
    x.transformer.add_model_to(table);
    table.number("--layers", x.layers, 1, 65536).says("L", "").otherwise("the model's");
    table.parsed("--parameters", x.parameters, parse_parameters).says("P", "such as 7.5e9").otherwise("the model's");
    table.number("--ranks", x.ranks, 1, 1 << 20).says("N", "data-parallel ranks");
    table.number("--tensor", x.tensor, 1, 65536).says("T", "ranks that share each layer");
    table.number("--micro-batch", x.micro_batch, 1, 1 << 20).says("B", "sequences");
    table.flag("--json", x.json).says("one object");
    table.common({"--model", "--hidden", "--heads", "--sequence", "--layers", "--parameters", "--ranks", "--tensor",
                  "--micro-batch", "--json"});
  }

  caf::error check() override {
    TRY(trained, opts_.transformer.model(opts_.layers));
    opts_.trained = *trained;
    if (opts_.has_activations() && trained->heads % opts_.tensor != 0)
      return invalid(fmt::format("--tensor {}: {} does not divide the {} attention heads of {}", opts_.tensor,
                                 opts_.tensor, trained->heads, trained->name));
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    const auto parameters = opts_.parameters.value_or(parameters_of(opts_.trained));
    fmt::print(to.out, "{}",
               opts_.json ? json_of(opts_, parameters) : text_of(opts_, parameters, page_format::of_console(false)));
    return exit_ok;
  }

  memory_options opts_;
};

} // namespace

tool_command memory_command() {
  return tool_command::of<memory_call>("simulate memory", "what training holds, by published formulas");
}

} // namespace ringmaster
