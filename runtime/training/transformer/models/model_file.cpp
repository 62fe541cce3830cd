#include "runtime/training/transformer/models/model_file.hpp"

#include "messages/errc.hpp"
#include "runtime/text/text_file.hpp"
#include "runtime/training/transformer/models/config_members.hpp"
#include "runtime/training/transformer/models/known_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace ringmaster::training {

namespace {

/// Which layers of a family look back at "sliding_window" positions only, where "layer_types" does not say it.
enum class windowed_layers : uint8_t { none, all, upper, every_other };

/// What "model_type" says of a model; members that are empty have no such thing.
struct model_family {
  std::string_view name;
  std::string_view experts{}, expert_width{}; ///< The members that say how many there are, and how wide.
  windowed_layers windows = windowed_layers::none;
  bool query_key_norms = false, query_biases = false, biases = false, latent = false, gpt = false;
};

constexpr model_family families[] = {
  {.name = "llama"},
  {.name = "mistral", .windows = windowed_layers::all},
  {.name = "qwen2", .windows = windowed_layers::upper, .query_biases = true},
  {.name = "qwen3", .windows = windowed_layers::upper, .query_key_norms = true},
  {.name = "qwen3_moe",
   .experts = "num_experts",
   .expert_width = "moe_intermediate_size",
   .windows = windowed_layers::upper,
   .query_key_norms = true},
  {.name = "mixtral",
   .experts = "num_local_experts",
   .expert_width = "intermediate_size",
   .windows = windowed_layers::all},
  {.name = "gpt_oss",
   .experts = "num_local_experts",
   .expert_width = "intermediate_size",
   .windows = windowed_layers::every_other,
   .biases = true},
  {.name = "deepseek_v3", .experts = "n_routed_experts", .expert_width = "moe_intermediate_size", .latent = true},
  {.name = "gpt2", .gpt = true}};

/// Limits as those of the options, within which products of two sizes fit into 32 bits where they are made.
constexpr uint32_t positions_max = 1 << 24, layers_max = 65536, heads_max = 65536, head_size_max = 1 << 14,
                   experts_max = 65536, shared_max = 1024, modules_max = 64;

/// Positions of a sample, of those that a member allows.
uint32_t sequence_of(uint32_t positions, std::optional<uint32_t> wanted) {
  return wanted.value_or(std::min(positions, sequence_of_files));
}

language_model read_gpt(config_members& file, std::optional<uint32_t> sequence) {
  const auto hidden = file.size("n_embd"), heads = file.size("n_head", {.most = heads_max});
  if (hidden % heads != 0)
    file.refuse("n_head", fmt::format("a number of heads among which the hidden size of {} divides", hidden));
  const auto layers = file.size("n_layer", {.most = layers_max});
  const auto positions = sequence_of(file.size("n_positions", {.most = positions_max}), sequence);
  auto x = gpt_shape("own", hidden, heads, layers, positions, file.size("vocab_size", {.most = positions_max}));
  x.width = file.size("n_inner", {.absent = x.width});
  x.tied = file.flag("tie_word_embeddings", true);
  return x;
}

void read_attention(config_members& file, const model_family& family, language_model& x) {
  x.heads = file.size("num_attention_heads", {.most = heads_max});
  x.key_value_heads = file.size("num_key_value_heads", {.most = heads_max, .absent = x.heads});
  if (x.heads % x.key_value_heads != 0)
    file.refuse("num_key_value_heads", fmt::format("a number that divides the {} heads of queries", x.heads));
  if (family.latent) {
    const config_members::allowed head{.most = head_size_max};
    x.head_size = file.size("qk_nope_head_dim", head);
    x.latent = {.query_rank = file.size("q_lora_rank", {.least = 0, .absent = 0}),
                .key_value_rank = file.size("kv_lora_rank"),
                .rotary_size = file.size("qk_rope_head_dim", head),
                .value_size = file.size("v_head_dim", head)};
  } else if (file.has("head_dim")) {
    x.head_size = file.size("head_dim", {.most = head_size_max});
  } else {
    x.head_size = x.hidden / x.heads;
    if (x.hidden % x.heads != 0)
      file.refuse("num_attention_heads",
                  fmt::format("a number of heads among which the hidden size of {} divides, or \"head_dim\" be there",
                              x.hidden));
  }
  x.query_key_norms = family.query_key_norms;
  x.query_biases = family.query_biases;
  x.biases = family.biases;
  if (!family.query_biases) // whose families have them whatever a file says
    file.must_be("attention_bias", family.biases);
  file.must_be("mlp_bias", family.biases);
}

void read_experts(config_members& file, const model_family& family, language_model& x) {
  auto& e = x.experts;
  e.count = file.size(family.experts, {.most = experts_max});
  const auto chosen = file.has("experts_per_token") && !file.has("num_experts_per_tok") ? "experts_per_token"
                                                                                        : "num_experts_per_tok";
  e.chosen = file.size(chosen, {.most = experts_max});
  if (e.chosen > e.count)
    file.refuse(chosen, fmt::format("at most \"{}\", the {} experts of a layer", family.experts, e.count));
  e.shared = file.size("n_shared_experts", {.most = shared_max, .least = 0, .absent = 0});
  e.width = file.size(family.expert_width);
  e.corrected = family.latent;
  e.dense_first = file.size("first_k_dense_replace", {.most = layers_max, .least = 0, .absent = 0});
  const auto groups = file.size("n_group", {.most = e.count, .least = 0, .absent = 0});
  const auto groups_chosen = file.size("topk_group", {.most = e.count, .least = 0, .absent = 0});
  if (groups > 1 && e.count % groups != 0)
    file.refuse("n_group", fmt::format("a number of groups among which {} experts divide", e.count));
  if (groups_chosen > std::max(groups, 1u))
    file.refuse("topk_group", groups == 0 ? "of the groups that \"n_group\" tells, which is missing"
                                          : fmt::format("at most \"n_group\", the {} groups of experts", groups));
  if (groups_chosen > 0 && groups_chosen < groups) { // else all are
    e.groups = groups;
    e.groups_chosen = groups_chosen;
  }
  if (e.dense_first > x.layers)
    file.refuse("first_k_dense_replace", fmt::format("at most all {} layers", x.layers));
  file.must_be_one("decoder_sparse_step");
  file.must_be_one("moe_layer_freq");
  if (!file.list("mlp_only_layers").empty())
    file.refuse("mlp_only_layers", "an empty list: plans know models whose layers all have experts");
  x.multi_token = file.size("num_nextn_predict_layers", {.most = modules_max, .least = 0, .absent = 0});
}

/// Of a family without them.
void refuse_experts(config_members& file) {
  for (std::string_view count : {"num_experts", "num_local_experts", "n_routed_experts"})
    if (file.size(count, {.most = experts_max, .least = 0, .absent = 0}) > 1)
      file.refuse(count, "missing: this family's layers are dense (qwen3_moe, mixtral and others have experts)");
}

/// Of each layer whether it has a window.
std::vector<bool> windowed(config_members& file, const model_family& family, uint32_t layers) {
  constexpr std::string_view kinds[] = {"full_attention", "sliding_attention"};
  std::vector<bool> result(layers);
  if (file.has("layer_types")) {
    const auto types = file.list("layer_types");
    if (types.size() != layers)
      file.refuse("layer_types", fmt::format("a list with a text for each of the {} layers", layers));
    for (size_t i = 0; i < std::min<size_t>(types.size(), layers); ++i) {
      auto kind = types[i].one_of(kinds);
      if (!kind)
        file.keep(kind.error());
      result[i] = kind && *kind == 1;
    }
    return result;
  }
  const auto first = family.windows == windowed_layers::upper
                       ? file.size("max_window_layers", {.most = layers_max, .least = 0, .absent = layers})
                       : 0;
  for (auto i = first; i < layers; ++i)
    result[i] = family.windows != windowed_layers::every_other || i % 2 == 0;
  return result;
}

void read_window(config_members& file, const model_family& family, language_model& x) {
  const bool said_to_be_used = family.windows == windowed_layers::upper;
  if (family.windows == windowed_layers::none || !file.has("sliding_window")
      || !file.flag("use_sliding_window", !said_to_be_used))
    return;
  const auto window = file.size("sliding_window", {.most = positions_max});
  const auto layers = windowed(file, family, x.layers);
  if (std::ranges::find(layers, true) == layers.end())
    return;
  bool alternate = true;
  for (size_t i = 0; i < layers.size(); ++i)
    alternate = alternate && layers[i] == (i % 2 == 0);
  if (alternate)
    x.window = window;
  else if (window < x.sequence)
    file.refuse("sliding_window",
                fmt::format("at least the {} positions of a sequence, for shorter windows are planned in every other "
                            "layer only, from the first on (--sequence {} would do)",
                            x.sequence, window));
}

language_model read_llama(config_members& file, const model_family& family, std::optional<uint32_t> sequence) {
  language_model x;
  x.gated = true;
  x.hidden = file.size("hidden_size");
  x.layers = file.size("num_hidden_layers", {.most = layers_max});
  x.vocabulary = file.size("vocab_size", {.most = positions_max});
  x.positions = file.size("max_position_embeddings", {.most = positions_max});
  x.sequence = sequence_of(x.positions, sequence);
  x.tied = file.flag("tie_word_embeddings", false);
  read_attention(file, family, x);
  if (family.experts.empty())
    refuse_experts(file);
  else
    read_experts(file, family, x);
  if (x.experts.count == 0 || x.experts.dense_first > 0)
    x.width = file.size("intermediate_size");
  read_window(file, family, x);
  return x;
}

bool means_file(const std::string& text) {
  std::error_code unknown;
  return text.find('/') != text.npos || text.ends_with(".json") || std::filesystem::exists(text, unknown);
}

} // namespace

caf::expected<language_model> parse_model(std::string_view document, std::optional<uint32_t> sequence) {
  auto read = parse_json(document);
  if (!read)
    return std::move(read.error());
  const json_place place{"model", document, *read};
  if (read->what != json_value::type::object)
    return place.wrong("an object, as Hugging Face's config.json");
  std::vector<std::string_view> names;
  for (auto& x : families)
    names.push_back(x.name);
  auto which = place.at("model_type").one_of(names);
  if (!which)
    return std::move(which.error());
  auto& family = families[*which];
  config_members file{place};
  auto x = family.gpt ? read_gpt(file, sequence) : read_llama(file, family, sequence);
  if (file.problem())
    return file.problem();
  if (auto problem = problem_of(x); !problem.empty())
    return place.refused(problem);
  return x;
}

caf::expected<language_model> model_from(const std::string& name_or_file, std::optional<uint32_t> sequence) {
  auto known = model_of(name_or_file);
  if (known || !means_file(name_or_file))
    return known;
  std::error_code unknown;
  if (!name_or_file.ends_with(".json") && !std::filesystem::exists(name_or_file, unknown))
    return make_error(errc::io_error,
                      fmt::format("there is no file {}: a model is a known one's name, such as llama3-8b, or a "
                                  "config.json that is here; nothing is fetched from Hugging Face's hub",
                                  name_or_file));
  auto x = parse_file(name_or_file, [&](const std::string& text) { return parse_model(text, sequence); });
  if (x)
    x->name = name_or_file;
  return x;
}

} // namespace ringmaster::training
