#include "client/training/model_checkpoint.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace ringmaster::training {

namespace {

/// What a run that resumes must have in common with the checkpoint, in the order of checks, and why. Generated data
/// follow from the seed, so the seed is first.
constexpr std::pair<const char*, std::string_view> fixed_circumstances[] = {
  {"seed", "the samples of a step follow from it"},
  {"global_batch", "the samples of a step follow from it"},
  {"optimizer", "its state is in the checkpoint, and another optimizer cannot use it"},
  {"data", "an epoch would have samples of both"},
  {"data_digest", "some bytes of the data differ, and an epoch would have samples of both"}};
constexpr std::string_view checkpoint_advice
  = "with the old value the run continues, and with another --checkpoint it starts again";

constexpr std::string_view adam_arrays[] = {"adam.m.", "adam.v."};

std::string name_of(uint32_t layer, const parameter& x) {
  return fmt::format("layers.{}.{}", layer, x.name);
}

std::string_view type_of(precision x) {
  return x == precision::float32 ? "F32" : "F64";
}

/// Calls `f` for every tensor of the model: its name, its part, its offset in the part, and the parameter.
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

/// What a step's samples and results follow from, apart from the model, by name in the metadata.
tensor_metadata circumstances_of(const training_job& job, const data_set& data) {
  return {{"optimizer", std::string{name_of(job.update.kind)}},
          {"seed", std::to_string(job.seed)},
          {"global_batch", std::to_string(job.shape.global_batch)},
          {"data", data_text(data)},
          {"data_digest", digest_text(data)}};
}

/// What can change from run to run, and is noted then.
tensor_metadata choices_of(const training_job& job) {
  return {{"learning_rate", fmt::to_string(job.update.rate)},
          {"weight_decay", fmt::to_string(job.update.weight_decay)}};
}

} // namespace

std::map<kept_part, std::vector<std::byte>> whole_parts(const training_job& job, const model_snapshot& x) {
  std::map<kept_part, std::vector<std::byte>> whole;
  for (auto& [what, data] : x.parts) {
    ensure(what.layer < job.layers.size(), "a part is of a layer of the model");
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
    ensure(at + its.elements() * bytes_of(job.as) <= whole[part].size(), "a snapshot has the whole of each tensor");
    const auto bytes = std::span<const std::byte>{whole[part]}.subspan(at, its.elements() * bytes_of(job.as));
    tensors.push_back({std::move(name), std::string{type_of(job.as)}, shape_of(its), bytes});
  });
  auto metadata = circumstances_of(job, data);
  metadata["model"] = layers_text(job);
  metadata.merge(choices_of(job));
  return to.save(x.step, std::move(tensors), metadata);
}

caf::expected<std::optional<found_checkpoint>> load_checkpoint(const checkpoint_directory& from,
                                                               const training_job& job, const data_set& data) {
  TRY(newest, from.newest());
  if (!*newest)
    return std::optional<found_checkpoint>{};
  auto& content = (*newest)->content;
  const auto file = from.file_of((*newest)->step).string();
  auto model = content.metadata().find("model");
  if (model != content.metadata().end() && model->second != layers_text(job))
    return malformed(fmt::format("{} is of another model: {}; this one is {}; {}", file, model->second,
                                 layers_text(job), checkpoint_advice));
  const auto ours = circumstances_of(job, data);
  for (auto& [name, reason] : fixed_circumstances)
    if (auto its = content.metadata().find(name); its != content.metadata().end() && its->second != ours.at(name))
      return malformed(fmt::format("{}: its {} is {}, and this run's {}: {}; {}", file, name, its->second,
                                   ours.at(name), reason, checkpoint_advice));
  found_checkpoint result;
  result.notes = std::move((*newest)->torn);
  for (auto& [name, now] : choices_of(job))
    if (auto its = content.metadata().find(name); its != content.metadata().end() && its->second != now)
      result.notes.push_back(fmt::format("{}: its {} was {}, and is {} from now on", file, name, its->second, now));
  result.image.step = (*newest)->step;
  std::map<kept_part, std::vector<std::byte>> whole;
  caf::error problem;
  for_each_tensor(job, [&](const std::string& name, const kept_part& part, uint64_t at, const parameter& its) {
    auto* found = content.find(name);
    if (found != nullptr && found->type != type_of(job.as) && (found->type == "F32" || found->type == "F64"))
      problem = malformed(fmt::format("{} has numbers of float{}, and this run of float{}: its --precision differs",
                                      file, found->type.substr(1), type_of(job.as).substr(1)));
    else if (found == nullptr || found->type != type_of(job.as) || found->shape != shape_of(its)
             || found->bytes.size() != its.elements() * bytes_of(job.as))
      problem = malformed(fmt::format("{} does not match this model, its optimizer ({}) and its precision: the "
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
  RETURN_ERROR(content.damage());
  for (auto& [part, bytes] : whole)
    result.image.parts.emplace(part, byte_block::of(std::move(bytes)));
  return std::optional{std::move(result)};
}

namespace {

/// A sample that cannot be read counts as zeros.
uint64_t fingerprint_of(const data_set& x) {
  constexpr uint32_t samples_max = 16;
  const auto count = std::min(samples_max, x.count());
  std::vector<float> inputs(count * x.shape().elements());
  std::vector<uint32_t> labels(count * x.labels_each());
  for (uint32_t i = 0; i < count; ++i) {
    const auto sample = static_cast<uint32_t>(uint64_t{i} * x.count() / count);
    [[maybe_unused]] auto unread = x.fill({&sample, 1},
                                          std::span{inputs}.subspan(i * x.shape().elements(), x.shape().elements()),
                                          std::span{labels}.subspan(i * x.labels_each(), x.labels_each()));
  }
  const uint64_t both[] = {link_checksum(std::as_bytes(std::span{inputs})),
                           link_checksum(std::as_bytes(std::span{labels}))};
  return link_checksum(std::as_bytes(std::span{both}));
}

/// What computes the layers: "plain".
std::string makings_text(const training_job& job) {
  std::set<std::string_view> all;
  for (auto& each : job.layers)
    all.insert(each->making());
  return fmt::format("{}", fmt::join(all, ", "));
}

} // namespace

std::string layers_text(const training_job& job) {
  std::string result;
  for (auto& each : job.layers)
    result += (result.empty() ? "" : ", ") + each->name();
  return result;
}

std::string data_text(const data_set& x) {
  return fmt::format("{} of {}, fingerprint {:016x}", counted(x.count(), "sample"), x.name(), fingerprint_of(x));
}

std::string digest_text(const data_set& x) {
  return fmt::format("{:016x}", x.digest());
}

std::vector<std::string> requested_settings(const training_job& job, const data_set& data, bool deterministic,
                                            bool mirror, const data_set* held_out) {
  const auto whole = [](const data_set& x) {
    return fmt::format("{} of {}, digest {}", counted(x.count(), "sample"), x.name(), digest_text(x));
  };
  ensure(job.strategy != nullptr && !job.layers.empty(), "a job has a strategy and layers");
  const auto& m = job.shape;
  const auto& by = job.update;
  return {
    fmt::format("strategy {}", job.strategy->name),
    fmt::format("layers {}", layers_text(job)),
    fmt::format("layers computed by {}", makings_text(job)),
    fmt::format("{}-bit numbers", 8 * bytes_of(job.as)),
    fmt::format("optimizer {}, learning rate {}, weight decay {}", name_of(by.kind), by.rate, by.weight_decay),
    fmt::format("betas {} and {}, epsilon {}", by.beta1, by.beta2, by.epsilon),
    fmt::format("seed {}", job.seed),
    fmt::format("global batch {}", m.global_batch),
    job.all_at_once ? "a micro-batch that follows from the number of ranks"
                    : fmt::format("micro-batch {}", m.micro_batch),
    fmt::format("{} tensor-parallel and {} data-parallel ranks, {} that share the model (0: the strategy chooses)",
                m.parallel.tp, m.parallel.dp, m.parallel.shard_ranks),
    fmt::format("chunks {}, prefetch {}, ZeRO stage {}, virtual ranks {}{}", m.parallel.chunks, m.prefetch,
                m.parallel.zero, m.virtual_ranks, m.parallel.sequence_parallel ? ", sequence-parallel" : ""),
    fmt::format("data: {}", whole(data)),
    held_out == nullptr ? std::string{"no held-out data"} : fmt::format("held-out data: {}", whole(*held_out)),
    fmt::format("sums in {} order, a model that the host has {}", deterministic ? "one" : "any",
                mirror ? "each step" : "now and then"), // --deterministic, --mirror
  };
}

} // namespace ringmaster::training
