#include "tools/simulated_training/memory_command.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
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

  /// Those of a model: nothing is known of the layers of so many parameters.
  bool has_activations() const { return !parameters || !transformer.given().empty() || layers; }
};

caf::expected<double> parse_parameters(const std::string& text) {
  const auto x = decimal_in(text);
  if (!x || !(*x >= 1) || *x > 1e18)
    return make_error(errc::invalid_argument, fmt::format("\"{}\" is not a number of parameters, such as 7.5e9", text));
  return *x;
}

struct activation_row {
  recomputation again;
  bool sequence_parallel;
};
constexpr activation_row activation_rows[] = {{recomputation::none, false},
                                              {recomputation::none, true},
                                              {recomputation::selective, false},
                                              {recomputation::selective, true},
                                              {recomputation::full, false}};

/// As the published formulas of the model have it.
attention_kernel attention_of(const memory_options& x) {
  return x.trained.dropouts ? attention_kernel::unfused : attention_kernel::flash;
}

double bytes_of(const memory_options& x, const activation_row& row) {
  parallel_setting how;
  how.shape.tensor = x.tensor;
  how.sequence_parallel = row.sequence_parallel;
  how.again = row.again;
  how.computed_in = x.transformer.computed_in;
  how.attention = attention_of(x);
  return activation_bytes(x.trained, x.micro_batch, how, {x.trained.experts.count > 0, false});
}

std::string text_of(const memory_options& x, double parameters) {
  auto text = fmt::format("{:.4g} billion parameters on each of {}{}\n{:>6} {:>14} {:>12}\n", parameters / giga,
                          counted(x.ranks, "data-parallel rank"),
                          x.tensor > 1 ? fmt::format(", in {} tensor-parallel shares", x.tensor) : "", "ZeRO",
                          "B/parameter", "GB");
  for (uint32_t stage = 0; stage <= 3; ++stage)
    text += fmt::format("{:>6} {:>14.4f} {:>12.1f}\n", stage, zero_bytes(stage, x.ranks),
                        zero_bytes(stage, x.ranks) * parameters / x.tensor / giga);
  if (!x.has_activations())
    return text;
  text += fmt::format("\nactivations of a layer of {}: micro-batch {}, sequence {}, tensor parallel {}, {}\n{:<12} "
                      "{:<18} {:>14} {:>16}\n",
                      x.trained.name, x.micro_batch, x.trained.sequence, x.tensor,
                      attention_of(x) == attention_kernel::flash ? "scores in tiles" : "scores in memory", "recompute",
                      "sequence parallel", "MB", "GB, all layers");
  for (auto& row : activation_rows)
    text += fmt::format("{:<12} {:<18} {:>14.2f} {:>16.2f}\n", name_of(row.again), row.sequence_parallel ? "yes" : "no",
                        bytes_of(x, row) / 1e6, bytes_of(x, row) * x.trained.layers / giga);
  return text;
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
    table.about(
      "What a GPU holds of a model in training: weights, gradients and optimizer states in ZeRO's stages "
      "(Rajbhandari et al. 2020, mixed precision with Adam), and a transformer layer's activations (Korthikanti et "
      "al. 2022, 2 bytes an element).");
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
    auto trained = opts_.transformer.model(opts_.layers);
    if (!trained)
      return std::move(trained.error());
    opts_.trained = *trained;
    if (opts_.has_activations() && trained->heads % opts_.tensor != 0)
      return invalid(fmt::format("--tensor {}: {} does not divide the {} attention heads of {}", opts_.tensor,
                                 opts_.tensor, trained->heads, trained->name));
    return caf::none;
  }

  caf::expected<int> run(const console& to) override {
    const auto parameters = opts_.parameters.value_or(parameters_of(opts_.trained));
    fmt::print(to.out, "{}", opts_.json ? json_of(opts_, parameters) : text_of(opts_, parameters));
    return exit_ok;
  }

  memory_options opts_;
};

} // namespace

tool_command memory_command() {
  return tool_command::of<memory_call>("simulate memory", "what training holds, by published formulas");
}

} // namespace ringmaster
