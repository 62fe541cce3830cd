#include "tools/validation/pretraining_rows.hpp"

#include "messages/errc.hpp"
#include "planner/models/known_models.hpp"
#include "tools/validation/csv_table.hpp"
#include "tools/validation/pretraining_recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <span>

namespace ringmaster {

using namespace training;

namespace {

constexpr std::array<std::string_view, 15> training_columns{"model",
                                                            "system",
                                                            "gpus",
                                                            "precision",
                                                            "global batch",
                                                            "micro batch",
                                                            "sequence length",
                                                            "fsdp",
                                                            "tensor parallelism",
                                                            "pipeline parallelism",
                                                            "context parallelism",
                                                            "virtual stages",
                                                            "expert parallelism",
                                                            "tokens/s/gpu",
                                                            "release"};
constexpr std::array<std::string_view, 1> ignored_training_columns{"model TFLOP/s/gpu"};

struct source_model {
  std::string_view name, ours;
  uint32_t multi_token = 0;
};
/// As the source writes them.
constexpr source_model source_models[] = {
  {"DeepSeekV3", "deepseek-v3", 1},  {"DeepSeekV3 (w/ MTP)", "deepseek-v3", 1}, {"DeepSeekV3 (w/o MTP)", "deepseek-v3"},
  {"GPT OSS 120B", "gpt-oss-120b"},  {"LLAMA3.1_405B", "llama3.1-405b"},        {"LLAMA3_70B", "llama3-70b"},
  {"LLAMA3_8B", "llama3-8b"},        {"Mixtral_8x7B", "mixtral-8x7b"},          {"Qwen3_235B_a22B", "qwen3-235b-a22b"},
  {"Qwen3_30B_a3B", "qwen3-30b-a3b"}};

struct source_system {
  std::string_view name, ours;
  gpu_generation generation;
};
constexpr source_system source_systems[] = {{"DGX-H100", "h100-80g", gpu_generation::hopper},
                                            {"DGX-H200", "h200-141g", gpu_generation::hopper},
                                            {"DGX-B200", "b200", gpu_generation::blackwell},
                                            {"DGX-B300", "b300", gpu_generation::blackwell_ultra},
                                            {"DGX-GB200", "gb200-nvl72", gpu_generation::blackwell},
                                            {"DGX-GB300", "gb300-nvl72", gpu_generation::blackwell_ultra}};

std::optional<number_format> precision_of(std::string_view text) {
  constexpr std::pair<std::string_view, number_format> all[] = {{"BF16", number_format::bf16},
                                                                {"FP8", number_format::fp8},
                                                                {"MXFP8", number_format::mxfp8},
                                                                {"NVFP4", number_format::nvfp4}};
  auto at = std::ranges::find(all, text, &std::pair<std::string_view, number_format>::first);
  return at == std::end(all) ? std::nullopt : std::optional{at->second};
}

/// "25.11" as months after 2025-11; half of one more for "26.04.01".
std::optional<double> months_of(const std::string& release_text) {
  unsigned year = 0, month = 0, again = 0;
  if (std::sscanf(release_text.c_str(), "%2u.%2u.%2u", &year, &month, &again) < 2 || month < 1 || month > 12)
    return std::nullopt;
  return (static_cast<double>(year) - 25) * 12 + month - 11 + (again > 0 ? 0.5 : 0);
}

/// Errors: corrupt, where the numbers contradict each other.
caf::error check_training(const published_training& x, uint32_t devices) {
  auto& how = x.how;
  if (devices % how.tp != 0 || devices / how.tp % how.pp != 0 || devices / how.tp / how.pp % how.cp != 0)
    return malformed(fmt::format("{} GPUs do not divide by tensor {} x pipeline {} x context {}", devices, how.tp,
                                 how.pp, how.cp));
  const auto data_ranks = devices / how.tp / how.pp / how.cp;
  if (how.global_batch % (uint64_t{data_ranks} * how.micro_batch) != 0)
    return malformed(fmt::format("a global batch of {} is no multiple of {} samples x {} data-parallel ranks",
                                 how.global_batch, how.micro_batch, data_ranks));
  if (x.trained.experts.count % how.ep != 0 || devices / how.pp % how.ep != 0)
    return malformed(fmt::format("{} experts on {} GPUs of a stage do not divide by {}", x.trained.experts.count,
                                 devices / how.pp, how.ep));
  return {};
}

caf::expected<published_training> read_row(csv_row from, const source_model& model, const source_system& system) {
  auto computed_in = precision_of(from.text("precision"));
  if (!computed_in)
    return from.refused(fmt::format("\"{}\" is no precision; there are BF16, FP8, MXFP8, NVFP4",
                                    from.text("precision")));
  auto months = months_of(from.text("release"));
  if (!months)
    return from.refused(fmt::format("\"{}\" is no release, such as 25.11", from.text("release")));
  published_training x;
  x.model = from.text("model");
  x.system = from.text("system");
  x.release = from.text("release");
  x.trained = *model_of(model.ours);
  x.on = *system_of(std::string{system.ours});
  x.generation = system.generation;
  x.trained.sequence = from.whole("sequence length");
  x.trained.multi_token = model.multi_token;
  auto& how = x.how;
  how.set_degrees(from.whole("tensor parallelism"), 1, from.whole("pipeline parallelism"));
  how.cp = from.whole("context parallelism");
  how.ep = from.whole("expert parallelism");
  how.global_batch = from.whole("global batch");
  how.micro_batch = from.whole("micro batch");
  how.chunks = from.whole("virtual stages");
  how.shard_ranks = from.count_or_none("fsdp");
  how.zero = 1;
  how.overlapped = true;
  how.gradient_bytes = 2; // as its software has them
  how.sequence_parallel = how.tp > 1;
  how.computed_in = *computed_in;
  how.attention = attention_kernel::flash;
  const auto gpus = from.whole("gpus");
  const auto tokens = from.number("tokens/s/gpu");
  if (from.problem())
    return from.problem();
  correct(x, *months);
  how.schedule = how.chunks > 1 ? pipeline_schedule::interleaved_1f1b : pipeline_schedule::one_f_one_b;
  if (const auto problem = check_training(x, gpus))
    return from.refused(render(problem));
  how.dp = gpus / (how.tp * how.pp * how.cp);
  x.seconds = static_cast<double>(how.global_batch) * x.trained.sequence / (tokens * gpus);
  return x;
}

void add_once(std::vector<std::string>& all, const std::string& x) {
  if (std::ranges::find(all, x) == all.end())
    all.push_back(x);
}

} // namespace

caf::expected<pretraining_rows> read_pretraining_rows(const std::string& file) {
  auto table = csv_table::read(file, {training_columns, ignored_training_columns});
  if (!table)
    return std::move(table.error());
  pretraining_rows result;
  result.fingerprint = table->fingerprint();
  for (size_t number = 0; number < table->row_count(); ++number) {
    auto from = table->row(number);
    auto model = std::ranges::find(source_models, from.text("model"), &source_model::name);
    auto system = std::ranges::find(source_systems, from.text("system"), &source_system::name);
    if (model == std::end(source_models))
      add_once(result.skipped, from.text("model"));
    if (system == std::end(source_systems))
      add_once(result.skipped, from.text("system"));
    if (model == std::end(source_models) || system == std::end(source_systems))
      continue;
    auto row = read_row(from, *model, *system);
    if (!row)
      return std::move(row.error());
    result.known.push_back(std::move(*row));
    result.numbers.push_back(number);
  }
  return result;
}

} // namespace ringmaster
