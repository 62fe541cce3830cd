#include "tools/validation/pretraining_rows.hpp"

#include "messages/errc.hpp"
#include "planner/models/known_models.hpp"
#include "runtime/links/link_checksum.hpp"
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

/// Of the file.
struct training_column {
  enum : size_t {
    model,
    system,
    gpus,
    precision,
    global_batch,
    micro_batch,
    sequence,
    fsdp,
    tensor,
    pipeline,
    context,
    virtual_stages,
    expert,
    tokens_a_second,
    release,
    count
  };
};

constexpr std::array<std::string_view, training_column::count> training_columns{"model",
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
  const auto others = how.tp * how.pp * how.cp;
  if (devices % others != 0)
    return malformed(fmt::format("{} GPUs do not divide by tensor {} x pipeline {} x context {}", devices, how.tp,
                                 how.pp, how.cp));
  if (how.global_batch % (devices / others * how.micro_batch) != 0)
    return malformed(fmt::format("a global batch of {} is no multiple of {} samples x {} data-parallel ranks",
                                 how.global_batch, how.micro_batch, devices / others));
  if (x.trained.experts.count % how.ep != 0 || devices / how.pp % how.ep != 0)
    return malformed(fmt::format("{} experts on {} GPUs of a stage do not divide by {}", x.trained.experts.count,
                                 devices / how.pp, how.ep));
  return {};
}

caf::expected<published_training> read_row(const csv_table& table, const csv_table::row& from,
                                           const source_model& model, const source_system& system) {
  using column = training_column;
  std::array<uint32_t, column::count> whole{};
  for (size_t i : {column::gpus, column::global_batch, column::micro_batch, column::sequence, column::tensor,
                   column::pipeline, column::context, column::virtual_stages, column::expert, column::fsdp}) {
    auto read = i == column::fsdp ? table.count_or_none(from, i) : table.number(from, i, true);
    if (!read)
      return std::move(read.error());
    whole[i] = static_cast<uint32_t>(*read);
  }
  auto tokens = table.number(from, column::tokens_a_second, false);
  if (!tokens)
    return std::move(tokens.error());
  auto computed_in = precision_of(from.cells[training_column::precision]);
  if (!computed_in)
    return table.refused(from, fmt::format("\"{}\" is no precision; there are BF16, FP8, MXFP8, NVFP4",
                                           from.cells[training_column::precision]));
  auto months = months_of(from.cells[training_column::release]);
  if (!months)
    return table.refused(from,
                         fmt::format("\"{}\" is no release, such as 25.11", from.cells[training_column::release]));
  published_training x;
  x.model = from.cells[training_column::model];
  x.system = from.cells[training_column::system];
  x.release = from.cells[training_column::release];
  x.trained = *model_of(model.ours);
  x.on = *system_of(std::string{system.ours});
  x.generation = system.generation;
  x.trained.sequence = whole[column::sequence];
  x.trained.multi_token = model.multi_token;
  auto& how = x.how;
  how.set_degrees(whole[column::tensor], 1, whole[column::pipeline]);
  how.cp = whole[column::context];
  how.ep = whole[column::expert];
  how.global_batch = whole[column::global_batch];
  how.micro_batch = whole[column::micro_batch];
  how.chunks = whole[column::virtual_stages];
  how.shard_ranks = whole[column::fsdp];
  how.zero = 1;
  how.overlapped = true;
  how.gradient_bytes = 2; // as its software has them
  how.sequence_parallel = how.tp > 1;
  how.computed_in = *computed_in;
  how.attention = attention_kernel::flash;
  correct(x, *months);
  how.schedule = how.chunks > 1 ? pipeline_schedule::interleaved_1f1b : pipeline_schedule::one_f_one_b;
  if (const auto problem = check_training(x, whole[column::gpus]))
    return table.refused(from, render(problem));
  how.dp = whole[column::gpus] / (how.tp * how.pp * how.cp);
  x.seconds = static_cast<double>(how.global_batch) * x.trained.sequence / (*tokens * whole[column::gpus]);
  return x;
}

uint64_t fingerprint_of(const csv_table& table) {
  std::string all;
  for (auto& row : table.rows())
    for (auto& cell : row.cells)
      all += cell + (&cell == &row.cells.back() ? '\n' : ',');
  return link_checksum(std::as_bytes(std::span{all}));
}

void add_once(std::vector<std::string>& all, const std::string& x) {
  if (std::ranges::find(all, x) == all.end())
    all.push_back(x);
}

} // namespace

caf::expected<pretraining_rows> read_pretraining_rows(const std::string& file) {
  auto table = csv_table::read(file, training_columns);
  if (!table)
    return std::move(table.error());
  pretraining_rows result;
  result.fingerprint = fingerprint_of(*table);
  for (size_t number = 0; number < table->rows().size(); ++number) {
    auto& from = table->rows()[number];
    auto model = std::ranges::find(source_models, from.cells[training_column::model], &source_model::name);
    auto system = std::ranges::find(source_systems, from.cells[training_column::system], &source_system::name);
    if (model == std::end(source_models))
      add_once(result.skipped, from.cells[training_column::model]);
    if (system == std::end(source_systems))
      add_once(result.skipped, from.cells[training_column::system]);
    if (model == std::end(source_models) || system == std::end(source_systems))
      continue;
    auto row = read_row(*table, from, *model, *system);
    if (!row)
      return std::move(row.error());
    result.known.push_back(std::move(*row));
    result.numbers.push_back(number);
  }
  return result;
}

} // namespace ringmaster
