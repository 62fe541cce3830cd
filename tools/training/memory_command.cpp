#include "tools/training/memory_command.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_value.hpp"
#include "tools/options/option_table.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ringmaster {

namespace {

using namespace training;

constexpr int exit_usage = 2;
constexpr double giga = 1e9;

constexpr auto memory_help = R"(usage: ringmaster simulate memory [options]

What a GPU holds of a model in training: weights, gradients and optimizer states in ZeRO's stages (Rajbhandari et al.
2020, mixed precision with Adam), and a transformer layer's activations (Korthikanti et al. 2022, 2 bytes an element).

  --model G           a known model (gpt3-175b); --hidden, --heads, --layers, --sequence, --vocabulary change it
  --parameters P      in place of the model's, such as 7.5e9
  --ranks N           data-parallel ranks (64)
  --tensor T          ranks that share each layer (1)
  --micro-batch B     sequences (1)
  --json              one object
  --help              this text
)";

struct memory_options {
  transformer_options transformer;
  std::optional<uint32_t> layers;
  std::optional<double> parameters;
  uint32_t ranks = 64, tensor = 1, micro_batch = 1;
  bool json = false, help = false;
  gpt trained;
};

caf::expected<double> parse_parameters(const std::string& text) {
  double x = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (problem != std::errc{} || end != text.data() + text.size() || !(x >= 1) || x > 1e18)
    return make_error(errc::invalid_argument, fmt::format("\"{}\" is not a number of parameters, such as 7.5e9", text));
  return x;
}

caf::expected<memory_options> parse(std::span<const std::string> args) {
  memory_options result;
  option_table table{"simulate memory"};
  result.transformer.add_to(table);
  table.number("--layers", result.layers, 1, 65536);
  table.parsed("--parameters", result.parameters, parse_parameters);
  table.number("--ranks", result.ranks, 1, 1 << 20);
  table.number("--tensor", result.tensor, 1, 65536);
  table.number("--micro-batch", result.micro_batch, 1, 1 << 20);
  table.flag("--json", result.json);
  if (auto problem = table.read(args))
    return problem;
  result.help = table.help();
  auto trained = result.transformer.model(result.layers);
  if (!trained)
    return std::move(trained.error());
  result.trained = *trained;
  return result;
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

double bytes_of(const memory_options& x, const activation_row& row) {
  return activation_bytes(x.trained, x.micro_batch, x.tensor, row.sequence_parallel, row.again);
}

std::string text_of(const memory_options& x, double parameters) {
  auto text = fmt::format("{:.4g} billion parameters on each of {} data-parallel ranks\n{:>6} {:>14} {:>12}\n",
                          parameters / giga, x.ranks, "ZeRO", "B/parameter", "GB");
  for (uint32_t stage = 0; stage <= 3; ++stage)
    text += fmt::format("{:>6} {:>14.4f} {:>12.1f}\n", stage, zero_bytes(stage, x.ranks),
                        zero_bytes(stage, x.ranks) * parameters / giga);
  text += fmt::format(
    "\nactivations of a layer of {}: micro-batch {}, sequence {}, tensor parallel {}\n{:<12} {:<18} {:>14} {:>16}\n",
    x.trained.name, x.micro_batch, x.trained.sequence, x.tensor, "recompute", "sequence parallel", "MB",
    "GB, all layers");
  for (auto& row : activation_rows)
    text += fmt::format("{:<12} {:<18} {:>14.2f} {:>16.2f}\n", name_of(row.again), row.sequence_parallel ? "yes" : "no",
                        bytes_of(x, row) / 1e6, bytes_of(x, row) * x.trained.layers / giga);
  return text;
}

std::string json_of(const memory_options& x, double parameters) {
  auto text = fmt::format(R"({{"model":{},"parameters":{:.17g},"ranks":{},"zero_bytes":[)", json_text(x.trained.name),
                          parameters, x.ranks);
  for (uint32_t stage = 0; stage <= 3; ++stage)
    text += fmt::format("{}{:.17g}", stage == 0 ? "" : ",", zero_bytes(stage, x.ranks) * parameters);
  text += R"(],"layer_activations":[)";
  for (auto& row : activation_rows)
    text += fmt::format(R"({}{{"recompute":"{}","sequence_parallel":{},"bytes":{:.17g}}})",
                        &row == activation_rows ? "" : ",", name_of(row.again), row.sequence_parallel,
                        bytes_of(x, row));
  return text + "]}\n";
}

} // namespace

int memory_command(std::span<const std::string> args, std::FILE* out, std::FILE* err) {
  auto opts = parse(args);
  if (!opts) {
    fmt::print(err, "ringmaster simulate memory: {}\n", render(opts.error()));
    return exit_usage;
  }
  if (opts->help) {
    fmt::print(out, "{}", memory_help);
    return 0;
  }
  const auto parameters = opts->parameters.value_or(parameters_of(opts->trained));
  fmt::print(out, "{}", opts->json ? json_of(*opts, parameters) : text_of(*opts, parameters));
  return 0;
}

} // namespace ringmaster
