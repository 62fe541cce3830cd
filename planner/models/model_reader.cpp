#include "planner/models/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

uint32_t config_members::size(std::string_view key, const allowed& x) {
  if (!has(key) && x.absent)
    return *x.absent;
  auto read = object_.at(key).number(x.most);
  if (read && *read >= x.least)
    return static_cast<uint32_t>(*read);
  refuse(key, fmt::format("a whole number from {} to {}", x.least, x.most));
  return x.least;
}

bool config_members::says(std::string_view key, std::string_view text) const {
  const auto read = object_.at(key).text();
  return read && *read == text;
}

std::string_view config_members::first_of(std::span<const std::string_view> keys) const {
  for (auto key : keys)
    if (has(key))
      return key;
  return keys.front();
}

bool config_members::flag(std::string_view key, bool absent) {
  const bool of_part = has(key),
             of_all = !of_part && around_ && around_->at(key).exists() && !around_->at(key).is_null();
  if (!of_part && !of_all)
    return absent;
  auto read = (of_part ? object_ : *around_).at(key).flag();
  if (read)
    return *read;
  keep(std::move(read.error()));
  return absent;
}

std::vector<json_field> config_members::list(std::string_view key) {
  if (!has(key))
    return {};
  auto read = object_.at(key).list();
  if (read)
    return std::move(*read);
  keep(std::move(read.error()));
  return {};
}

void config_members::must_be(std::string_view key, bool usual) {
  if (flag(key, usual) != usual)
    refuse(key, fmt::format("{}: plans know no other models of this family", usual));
}

void config_members::must_be_one(std::string_view key) {
  if (size(key, {.least = 0, .absent = 1}) != 1)
    refuse(key, "1: plans know models whose layers all have experts, but for the first ones");
}

void config_members::refuse(std::string_view key, std::string_view must_be) {
  keep(object_.at(key).wrong(must_be));
}

void config_members::keep(caf::error problem) {
  if (!problem_)
    problem_ = std::move(problem);
}

namespace {

/// Limits as those of the options, within which products of two sizes fit into 32 bits where they are made.
constexpr uint32_t positions_max = 1 << 24, layers_max = 65536, heads_max = 65536, head_size_max = 1 << 14,
                   experts_max = 65536, shared_max = 1024, modules_max = 64;

// The names that files have for a size.
constexpr std::string_view hidden_names[] = {"hidden_size", "n_embd", "d_model", "n_embed"};
constexpr std::string_view layer_names[] = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
constexpr std::string_view head_names[] = {"num_attention_heads", "n_head", "n_heads", "num_heads"};
constexpr std::string_view key_value_names[] = {"num_key_value_heads", "num_kv_heads", "n_head_kv",
                                                "multi_query_group_num"};
constexpr std::string_view head_size_names[] = {"head_dim", "kv_channels"};
constexpr std::string_view vocabulary_names[] = {"vocab_size", "padded_vocab_size"};
constexpr std::string_view width_names[] = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
constexpr std::string_view position_names[] = {"max_position_embeddings", "n_positions", "max_sequence_length",
                                               "max_seq_len", "seq_length"};
constexpr std::string_view chosen_names[] = {"num_experts_per_tok", "experts_per_token", "moe_k"};
constexpr std::string_view shared_names[] = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"};
constexpr std::string_view dense_first_names[] = {"first_k_dense_replace", "moe_layer_start_index"};
constexpr std::string_view every_names[] = {"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval",
                                            "moe_layer_freq"};

std::optional<uint32_t> in_place_of(uint32_t absent) {
  return absent == 0 ? std::nullopt : std::optional{absent};
}

} // namespace

language_model model_reader::read() {
  read_sizes();
  read_positions();
  read_heads();
  read_norms();
  read_biases();
  if (family_.experts.count.empty())
    refuse_experts();
  else
    read_experts();
  if (family_.name == "falcon")
    read_falcon();
  if (family_.linear)
    read_linear();
  read_windows();
  if (x_.experts.count > 0)
    x_.multi_token = file_.size("num_nextn_predict_layers", {.most = modules_max, .least = 0, .absent = 0});
  return x_;
}

void model_reader::read_sizes() {
  x_.hidden = file_.size(file_.first_of(hidden_names));
  x_.layers = file_.size(file_.first_of(layer_names), {.most = layers_max});
  x_.vocabulary = file_.size(file_.first_of(vocabulary_names),
                             {.most = positions_max, .absent = in_place_of(family_.vocabulary)});
  x_.gated = family_.gated;
  x_.tied = file_.flag("tie_word_embeddings", family_.tied);
  x_.dropouts = family_.dropouts;
  if (family_.name == "llama4_text") {
    x_.width = file_.size("intermediate_size_mlp");
  } else if (!family_.gated) { // four times as wide, where files do not say it
    const auto times = file_.size("expansion_ratio", {.most = 64, .absent = 4});
    x_.width = file_.size(file_.first_of(width_names), {.absent = std::min(times * x_.hidden, 1u << 20)});
  } else if (family_.experts.count.empty()) {
    x_.width = file_.size(file_.first_of(width_names));
  }
  if (family_.name == "opt" && file_.size("word_embed_proj_dim", {.absent = x_.hidden}) != x_.hidden)
    file_.refuse("word_embed_proj_dim", fmt::format("the hidden size of {}", x_.hidden));
}

void model_reader::read_positions() {
  const auto member = file_.first_of(position_names);
  if (file_.has(member))
    x_.positions = file_.size(member, {.most = positions_max});
  else
    x_.positions = family_.positions;
  x_.sequence = sequence_.value_or(x_.positions == 0 ? language_model{}.sequence
                                                     : std::min(x_.positions, sequence_of_files));
  if (family_.learned_positions)
    x_.position_rows = x_.positions + family_.rows_beside;
}

void model_reader::read_heads() {
  const auto heads = file_.first_of(head_names), keys = file_.first_of(key_value_names);
  x_.heads = file_.size(heads, {.most = heads_max, .absent = in_place_of(family_.heads)});
  if (family_.name == "gpt_bigcode")
    x_.key_value_heads = file_.flag("multi_query", true) ? 1 : x_.heads;
  else if (family_.name == "chatglm" && !file_.flag("multi_query_attention", false))
    x_.key_value_heads = x_.heads;
  else
    x_.key_value_heads = file_.size(keys, {.most = heads_max,
                                           .absent = in_place_of(family_.key_value_heads).value_or(x_.heads)});
  if (x_.heads % x_.key_value_heads != 0)
    file_.refuse(keys, fmt::format("a number that divides the {} heads of queries", x_.heads));
  x_.gated_attention = family_.gated_attention;
  x_.sinks = x_.unfused_activation = family_.sinks;
  if (family_.latent)
    return read_latent();
  const auto size = file_.first_of(head_size_names);
  if (file_.has(size) || family_.head_size > 0) {
    x_.head_size = file_.size(size, {.most = head_size_max, .absent = family_.head_size});
    return;
  }
  x_.head_size = x_.hidden / x_.heads;
  if (x_.hidden % x_.heads != 0)
    file_.refuse(heads,
                 fmt::format("a number of heads among which the hidden size of {} divides, or \"head_dim\" be there",
                             x_.hidden));
}

void model_reader::read_latent() {
  const config_members::allowed head{.most = head_size_max};
  x_.head_size = file_.size("qk_nope_head_dim", head);
  x_.latent = {.query_rank = file_.size("q_lora_rank", {.least = 0, .absent = 0}),
               .key_value_rank = file_.size("kv_lora_rank"),
               .rotary_size = file_.size("qk_rope_head_dim", head),
               .value_size = file_.size("v_head_dim", head)};
  file_.must_be("attention_bias", false);
  if (family_.windows.member == "index_topk")
    x_.indexer = {.heads = file_.size("index_n_heads", {.most = heads_max}),
                  .head_size = file_.size("index_head_dim", head)};
}

void model_reader::read_norms() {
  x_.norms = family_.norms;
  x_.norm_vectors = family_.norm_vectors;
  x_.embedding_norm = family_.embedding_norm;
  const bool usual = family_.name == "minimax_m2";
  if (family_.norms_queries.empty() || file_.flag(family_.norms_queries, usual))
    x_.query_key_norms = family_.query_key_norms;
  if (family_.name == "phi" || family_.name == "stablelm") // whose such norms have biases, or are one for each head
    file_.must_be("qk_layernorm", false);
  x_.parallel = family_.name == "gpt_neox"   ? file_.flag("use_parallel_residual", true)
                : family_.name == "stablelm" ? file_.flag("use_parallel_residual", false)
                                             : family_.parallel;
  if (family_.name == "stablelm" && x_.parallel)
    x_.norms = 1;
}

void model_reader::read_biases() {
  x_.query_biases = is(family_.attention);
  x_.output_bias = x_.query_biases && family_.output_as_attention;
  x_.network_biases = is(family_.network);
  x_.logit_bias = is(family_.logits);
  if (family_.name == "seed_oss")
    file_.must_be("attention_out_bias", false);
  if (family_.name == "mpt")
    file_.must_be("no_bias", true);
}

/// Two architectures: the larger models' have grouped queries and a norm for each of attention and network.
void model_reader::read_falcon() {
  const bool grouped = file_.flag("new_decoder_architecture", file_.has("n_head_kv"));
  if (!grouped)
    x_.key_value_heads = file_.flag("multi_query", true) ? 1 : x_.heads;
  x_.parallel = grouped || file_.flag("parallel_attn", true);
  x_.norms = grouped ? file_.size("num_ln_in_parallel_attn", {.most = 2, .absent = 2}) : x_.parallel ? 1 : 2;
}

void model_reader::read_experts() {
  auto& e = x_.experts;
  e.count = file_.size(family_.experts.count, {.most = experts_max});
  const auto chosen = file_.first_of(chosen_names);
  e.chosen = file_.size(chosen, {.most = experts_max});
  if (e.chosen > e.count)
    file_.refuse(chosen, fmt::format("at most \"{}\", the {} experts of a layer", family_.experts.count, e.count));
  e.width = file_.size(family_.experts.width);
  if (!family_.experts.shared_width.empty())
    e.shared_width = file_.size(family_.experts.shared_width, {.least = 0, .absent = 0});
  else
    e.shared_width = e.width
                     * file_.size(file_.first_of(shared_names),
                                  {.most = shared_max, .least = 0, .absent = family_.shared});
  e.shared_gate = family_.shared_gate && e.shared_width > 0;
  e.router_bias = family_.router_bias;
  e.corrected = family_.corrected || file_.says("topk_method", "noaux_tc");
  if (family_.name == "minimax_m2")
    e.corrected = file_.flag("use_routing_bias", true);
  const auto first = file_.first_of(dense_first_names), every = file_.first_of(every_names);
  e.dense_first = file_.size(first, {.most = layers_max, .least = 0, .absent = 0});
  e.every = file_.size(every, {.most = layers_max, .absent = 1});
  if (every == "moe_layer_freq" && e.every != 1) // counted from the first layer on, not to the last of each
    file_.must_be_one(every);
  const auto without = file_.list("mlp_only_layers");
  for (size_t i = 0; i < without.size(); ++i) {
    const auto layer = without[i].number(layers_max);
    if (!layer || *layer != i || e.every != 1) {
      file_.refuse("mlp_only_layers", "a list of the first layers, 0, 1, ...: plans know no others without experts");
      break;
    }
    e.dense_first = static_cast<uint32_t>(std::max<size_t>(e.dense_first, i + 1));
  }
  read_groups();
  if (e.dense_first > x_.layers)
    file_.refuse(first, fmt::format("at most all {} layers", x_.layers));
  if (x_.width == 0 && x_.has_dense_layers())
    x_.width = file_.size(file_.first_of(width_names));
  if (!x_.has_dense_layers())
    x_.width = 0;
}

void model_reader::read_groups() {
  auto& e = x_.experts;
  if (file_.says("topk_method", "greedy")) // whatever the groups are
    return;
  const auto groups = file_.size("n_group", {.most = e.count, .least = 0, .absent = 0});
  const auto chosen = file_.size("topk_group", {.most = e.count, .least = 0, .absent = 0});
  if (groups > 1 && e.count % groups != 0)
    file_.refuse("n_group", fmt::format("a number of groups among which {} experts divide", e.count));
  if (chosen > std::max(groups, 1u))
    file_.refuse("topk_group", groups == 0 ? "of the groups that \"n_group\" gives, which is missing"
                                           : fmt::format("at most \"n_group\", the {} groups of experts", groups));
  if (chosen > 0 && chosen < groups) { // else all are
    e.groups = groups;
    e.groups_chosen = chosen;
  }
}

/// Of a family without them.
void model_reader::refuse_experts() {
  for (std::string_view count : {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"})
    if (file_.size(count, {.most = experts_max, .least = 0, .absent = 0}) > 1)
      file_.refuse(count, "missing: this family's layers are dense (qwen3_moe, mixtral and others have experts)");
}

void model_reader::read_linear() {
  const config_members::allowed head{.most = head_size_max};
  x_.linear = {.key_heads = file_.size("linear_num_key_heads", {.most = heads_max}),
               .value_heads = file_.size("linear_num_value_heads", {.most = heads_max}),
               .key_size = file_.size("linear_key_head_dim", head),
               .value_size = file_.size("linear_value_head_dim", head),
               .convolution = file_.size("linear_conv_kernel_dim", {.most = 1024, .absent = 4})};
}

std::vector<bool> model_reader::windowed_layers_of_file() {
  constexpr std::string_view kinds[] = {"full_attention", "sliding_attention", "chunked_attention", "linear_attention"};
  std::vector<bool> result(x_.layers);
  if (file_.has("layer_types")) {
    const auto types = file_.list("layer_types");
    if (types.size() != x_.layers)
      file_.refuse("layer_types", fmt::format("a list with a text for each of the {} layers", x_.layers));
    for (size_t i = 0; i < std::min<size_t>(types.size(), x_.layers); ++i) {
      auto kind = types[i].one_of(kinds);
      if (!kind)
        file_.keep(kind.error());
      else if ((*kind == 3 && !family_.linear) || (*kind != 3 && *kind != 0 && family_.linear))
        file_.keep(types[i].wrong(family_.linear ? "full_attention or linear_attention, as this family has them"
                                                 : "full_attention or sliding_attention: this family has no other"));
      result[i] = kind && *kind != 0;
    }
    return result;
  }
  const auto first = family_.windows.layers == windowed_layers::upper
                       ? file_.size("max_window_layers", {.most = layers_max, .least = 0, .absent = x_.layers})
                       : 0;
  const auto period = family_.windows.layers != windowed_layers::periodic ? 0
                      : family_.windows.period_member.empty()
                        ? family_.windows.period
                        : file_.size(family_.windows.period_member,
                                     {.most = layers_max, .absent = family_.windows.period});
  for (auto i = first; i < x_.layers; ++i)
    result[i] = family_.windows.layers != windowed_layers::none && (period == 0 || (i + 1) % period != 0);
  return result;
}

/// As a period, or as a first layer.
void model_reader::set_windowed(const std::vector<bool>& layers) {
  auto fits = [&](uint32_t from, uint32_t period) {
    for (uint32_t i = 0; i < layers.size(); ++i)
      if (layers[i] != (i >= from && (period == 0 || (i + 1) % period != 0)))
        return false;
    x_.windows_from = from;
    x_.full_every = period;
    return true;
  };
  const auto first = static_cast<uint32_t>(std::ranges::find(layers, true) - layers.begin());
  if (fits(first, 0))
    return;
  for (uint32_t period = 2; period <= layers.size(); ++period)
    if (fits(0, period))
      return;
  if (family_.linear || x_.window < x_.sequence)
    file_.refuse("layer_types", family_.linear
                                  ? "regular, such as full attention in every fourth layer"
                                  : fmt::format("regular, such as full attention in every second or sixth layer, where "
                                                "windows are shorter than a sequence (--sequence {} would do)",
                                                x_.window));
  x_.window = 0;
}

void model_reader::read_windows() {
  const bool said_to_be_used = family_.windows.layers == windowed_layers::upper;
  if (family_.linear)
    return set_windowed(windowed_layers_of_file());
  if (family_.windows.layers == windowed_layers::none && !file_.has("layer_types"))
    return;
  const bool is_given = file_.has(family_.windows.member), is_null = file_.is_null(family_.windows.member);
  if ((!is_given && (is_null || family_.windows.absent == 0))
      || !file_.flag("use_sliding_window", !said_to_be_used || file_.has("layer_types")))
    return;
  const auto layers = windowed_layers_of_file();
  if (std::ranges::find(layers, true) == layers.end())
    return;
  x_.window = file_.size(family_.windows.member, {.most = positions_max, .absent = family_.windows.absent});
  x_.chunked = family_.windows.chunked;
  set_windowed(layers);
}

} // namespace ringmaster::training
