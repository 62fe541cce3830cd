#include "planner/models/model_file.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/models/known_models.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/text_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace ringmaster::training {

namespace {

/// Where a file of a model of several parts has that of its text. The file itself, where it has none.
json_field text_part(const json_field& file) {
  for (auto part : {"text_config", "llm_config", "language_config", "thinker_config"}) {
    const auto inner = file.at(part);
    auto members = inner.members();
    if (members && !members->empty())
      return text_part(inner);
  }
  return file;
}

std::string text_at(const json_field& x) {
  auto text = x.text();
  return text ? *text : "";
}

/// The letters and digits of a name, small: "DeepseekV3" and "deepseek_v3" are the same.
std::string plain(std::string_view name) {
  std::string result;
  for (unsigned char c : name)
    if (std::isalnum(c))
      result += static_cast<char>(std::tolower(c));
  return result;
}

bool has(const json_field& x, std::string_view key) {
  return x.at(key).exists() && !x.at(key).is_null();
}

/// Families whose members a file has, the likeliest first: by the class that it names, then by the members that only
/// some have.
std::vector<std::string_view> likely_families(const json_field& file) {
  std::vector<std::string_view> result;
  if (auto classes = file.at("architectures").list(); classes && !classes->empty()) {
    const auto wanted = plain(text_at(classes->front()));
    for (auto& x : model_families())
      if (wanted == plain(x.name) + "forcausallm" || wanted == plain(x.name) + "lmheadmodel")
        result.push_back(x.name);
  }
  auto add = [&](std::string_view family, std::initializer_list<std::string_view> members) {
    if (std::ranges::all_of(members, [&](auto key) { return has(file, key); }))
      result.push_back(family);
  };
  add("deepseek_v32", {"kv_lora_rank", "n_routed_experts", "index_topk"});
  if (has(file, "topk_method") && text_at(file.at("topk_method")) != "noaux_tc")
    add("deepseek_v2", {"kv_lora_rank", "n_routed_experts"});
  add("deepseek_v3", {"kv_lora_rank", "n_routed_experts"});
  add("qwen3_next", {"linear_num_value_heads", "num_experts"});
  add("qwen3_5", {"linear_num_value_heads"});
  add("llama4_text", {"interleave_moe_layer_step", "num_local_experts"});
  add("qwen2_moe", {"num_experts", "shared_expert_intermediate_size"});
  add("qwen3_moe", {"num_experts", "moe_intermediate_size"});
  add("glm4_moe", {"n_routed_experts", "moe_intermediate_size"});
  add("olmoe", {"num_experts"});
  add("mixtral", {"num_local_experts"});
  add("gpt2", {"n_embd", "n_positions"});
  add("falcon", {"multi_query", "hidden_size"});
  add("starcoder2", {"use_bias", "intermediate_size"});
  add("llama", {"hidden_size", "intermediate_size"});
  return result;
}

/// The refusal offers the first family that the file can be read as.
caf::error unknown_family(const json_field& type, const json_field& file, const json_field& all) {
  const auto known = "known families are: " + known_families_text();
  for (auto name : likely_families(file)) {
    config_members members{file, all};
    const auto x = model_reader{members, *model_family_of(name), std::nullopt}.read();
    if (!members.problem() && !problem_of(x))
      return type.is_not("a known family of models",
                         fmt::format("its members are those of {}: if its layers are the same, --as {} reads it as "
                                     "one; {}",
                                     name, name, known));
  }
  const auto near = nearest_word(text_at(type), model_family_names());
  return type.is_not("a known family of models" + (near.empty() ? "" : fmt::format(" (did you mean {}?)", near)),
                     known);
}

bool means_file(const std::string& text) {
  std::error_code unknown;
  return text.find('/') != text.npos || text.ends_with(".json") || std::filesystem::exists(text, unknown);
}

} // namespace

caf::expected<language_model> parse_model(std::string_view document, const model_file_options& opts) {
  TRY(read, parse_json(document));
  const json_field all{"model", *read};
  if (!all.is_object())
    return all.wrong("an object, as Hugging Face's config.json");
  const auto file = text_part(all), inner = file.at("model_type"), outer = all.at("model_type");
  auto* family = model_family_of(opts.family ? *opts.family : text_at(inner));
  if (family == nullptr && !opts.family) // a part may leave it to the whole
    family = model_family_of(text_at(outer));
  if (family == nullptr && opts.family)
    return unknown_model_family(*opts.family);
  if (family == nullptr)
    return unknown_family(inner.exists() ? inner : outer, file, all);
  config_members members{file, all};
  auto x = model_reader{members, *family, opts.sequence}.read();
  if (members.problem())
    return members.problem();
  if (auto problem = problem_of(x))
    return invalid(render(problem));
  x.text_only = has(all, "vision_config") || has(all, "audio_config") || has(all, "thinker_config");
  return x;
}

caf::expected<language_model> model_from(const std::string& name_or_file, const model_file_options& opts) {
  auto known = model_of(name_or_file);
  if (known && opts.family)
    return invalid(fmt::format("--as is of a configuration file, and {} is a known model", name_or_file));
  if (known || !means_file(name_or_file))
    return known;
  std::error_code unknown;
  if (!name_or_file.ends_with(".json") && !std::filesystem::exists(name_or_file, unknown))
    return make_error(errc::io_error,
                      fmt::format("there is no file {}: a model is a known one's name, such as llama3-8b, or a "
                                  "config.json that is here; nothing is fetched from Hugging Face's hub",
                                  name_or_file));
  auto x = parse_file(name_or_file, [&](const std::string& text) { return parse_model(text, opts); });
  if (x)
    x->name = name_or_file;
  return x;
}

} // namespace ringmaster::training
