#include "client/training/model_checkpoint.hpp"

#include "client/training/requested_settings.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ringmaster::training {

namespace {

/// Of a run that goes on, in the order in which people are told: drawn data follows from the seed. And why.
constexpr std::pair<const char*, std::string_view> circumstances_that_stay[] = {
  {"seed", "which samples a step takes follows from it"},
  {"global_batch", "which samples a step takes follows from it"},
  {"optimizer", "what it keeps is in the checkpoint, and means nothing to another"},
  {"data", "an epoch would have samples of both"},
  {"data_digest", "some of the data's bytes are others, and an epoch would have samples of both"}};
constexpr std::string_view what_would_do
  = "told as it was the run goes on, and with another --checkpoint it begins anew";

constexpr std::string_view adam_arrays[] = {"adam.m.", "adam.v."};

std::string name_of(uint32_t layer, const parameter& x) {
  return fmt::format("layers.{}.{}", layer, x.name);
}

std::string_view type_of(precision x) {
  return x == precision::float32 ? "F32" : "F64";
}

/// Calls it for every tensor of the model: its name, the part it is of, where in that it begins, and the parameter.
template <class Function>
void for_each_tensor(const training_job& job, Function f) {
  for (uint32_t l = 0; l < job.layers.size(); ++l) {
    const auto& of = *job.layers[l];
    for (uint32_t array = 0; array <= job.update.state_arrays(); ++array) {
      auto at = array == 0 ? 0 : (array - 1) * of.elements({}) * bytes_of(job.as);
      const auto part = whole_part(array == 0 ? value_kind::weight : value_kind::optimizer_state, l);
      for (auto& x : of.parameters()) {
        f(array == 0 ? name_of(l, x) : std::string{adam_arrays[array - 1]} + name_of(l, x), part, at, x);
        at += x.elements() * bytes_of(job.as);
      }
    }
  }
}

std::vector<uint64_t> shape_of(const parameter& x) {
  return x.rows == 1 ? std::vector{x.columns} : std::vector{x.rows, x.columns};
}

/// What a step's samples, and what comes of them, follow from, beside the model: by its name in the metadata.
tensor_metadata circumstances_of(const training_job& job, const data_set& data) {
  return {{"optimizer", std::string{name_of(job.update.kind)}},
          {"seed", std::to_string(job.seed)},
          {"global_batch", std::to_string(job.shape.global_batch)},
          {"data", data_text(data)},
          {"data_digest", digest_text(data)}};
}

/// What may be another one in each run, and is told then: the same.
tensor_metadata choices_of(const training_job& job) {
  return {{"learning_rate", fmt::to_string(job.update.rate)},
          {"weight_decay", fmt::to_string(job.update.weight_decay)}};
}

} // namespace

std::map<kept_part, std::vector<std::byte>> whole_parts(const training_job& job, const model_snapshot& x) {
  std::map<kept_part, std::vector<std::byte>> whole;
  for (auto& [what, data] : x.parts) {
    const auto of = whole_part(what.kind, what.layer);
    auto& bytes = whole[of];
    bytes.resize(bytes_of(job, of));
    copy_common(job, what, data.bytes(), of, bytes);
  }
  return whole;
}

caf::error save_checkpoint(const checkpoint_directory& to, const training_job& job, const data_set& data,
                           const model_snapshot& x) {
  auto whole = whole_parts(job, x);
  std::vector<stored_tensor> tensors;
  for_each_tensor(job, [&](std::string name, const kept_part& part, uint64_t at, const parameter& its) {
    const auto bytes = std::span<const std::byte>{whole[part]}.subspan(at, its.elements() * bytes_of(job.as));
    tensors.push_back({std::move(name), std::string{type_of(job.as)}, shape_of(its), bytes});
  });
  auto said = circumstances_of(job, data);
  said["model"] = layers_text(job);
  said.merge(choices_of(job));
  return to.save(x.step, std::move(tensors), said);
}

caf::expected<std::optional<found_checkpoint>> load_checkpoint(const checkpoint_directory& from,
                                                               const training_job& job, const data_set& data) {
  auto newest = from.newest();
  if (!newest)
    return std::move(newest.error());
  if (!*newest)
    return std::optional<found_checkpoint>{};
  auto& content = (*newest)->content;
  const auto file = from.file_of((*newest)->step).string();
  auto said = content.metadata().find("model");
  if (said != content.metadata().end() && said->second != layers_text(job))
    return malformed(fmt::format("{} is of another model: {}; this one is {}; {}", file, said->second, layers_text(job),
                                 what_would_do));
  const auto ours = circumstances_of(job, data);
  for (auto& [name, reason] : circumstances_that_stay)
    if (auto its = content.metadata().find(name); its != content.metadata().end() && its->second != ours.at(name))
      return malformed(fmt::format("{}: its {} is {}, and this run's {}: {}; {}", file, name, its->second,
                                   ours.at(name), reason, what_would_do));
  found_checkpoint result;
  result.notes = std::move((*newest)->torn);
  for (auto& [name, now] : choices_of(job))
    if (auto its = content.metadata().find(name); its != content.metadata().end() && its->second != now)
      result.notes.push_back(fmt::format("{}: its {} was {}, and is {} from here on", file, name, its->second, now));
  result.image.step = (*newest)->step;
  std::map<kept_part, std::vector<std::byte>> whole;
  caf::error problem;
  for_each_tensor(job, [&](const std::string& name, const kept_part& part, uint64_t at, const parameter& its) {
    auto* found = content.find(name);
    if (found != nullptr && found->type != type_of(job.as) && (found->type == "F32" || found->type == "F64"))
      problem = malformed(fmt::format("{} has numbers of float{}, and this run of float{}: its --precision is another",
                                      file, found->type.substr(1), type_of(job.as).substr(1)));
    else if (found == nullptr || found->type != type_of(job.as) || found->shape != shape_of(its))
      problem = malformed(fmt::format("{} does not go with this model, its optimizer ({}) and its precision: the "
                                      "tensor {} must be {} of {} x {}",
                                      file, name_of(job.update.kind), name, type_of(job.as), its.rows, its.columns));
    if (problem)
      return;
    auto& bytes = whole[part];
    bytes.resize(bytes_of(job, part));
    std::ranges::copy(found->bytes, bytes.begin() + static_cast<ptrdiff_t>(at));
  });
  if (problem)
    return problem;
  if (auto damage = content.damage())
    return damage;
  for (auto& [part, bytes] : whole)
    result.image.parts.emplace(part, byte_block::of(std::move(bytes)));
  return std::optional{std::move(result)};
}

} // namespace ringmaster::training
