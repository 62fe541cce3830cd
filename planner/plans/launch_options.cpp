#include "planner/plans/launch_options.hpp"

#include "planner/estimates/stage_layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace ringmaster {

using namespace training;

namespace {

using lines = std::vector<std::string>;

/// Whether each chunk has as many layers as all others, which needs no layout.
bool divides_evenly(const language_model& m, const training_setting& how) {
  return m.layers % (how.pp * how.chunks_of_stage()) == 0 && m.multi_token == 0;
}

std::string sides_of_megatron(const language_model& m, const training_setting& how) {
  auto text = fmt::format("--tensor-model-parallel-size {} --pipeline-model-parallel-size {}", how.tp, how.pp);
  if (how.cp > 1)
    text += fmt::format(" --context-parallel-size {}", how.cp);
  if (m.experts.count > 0)
    text += fmt::format(" --expert-model-parallel-size {}", how.ep);
  return text;
}

void add_pipeline_of_megatron(lines& to, const language_model& m, const training_setting& how) {
  if (how.pp == 1)
    return;
  if (!divides_evenly(m, how)) // the stages' chunks are those of the layout
    to.push_back(fmt::format("--pipeline-model-parallel-layout '{}'", megatron_layout(m, how)));
  else if (how.chunks > 1)
    to.push_back(fmt::format("--num-virtual-stages-per-pipeline-rank {}", how.chunks));
}

std::string sharding_of_megatron(const training_setting& how) {
  if (how.shard_ranks == 0 && how.zero <= 1)
    return how.zero == 1 ? "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
                         : "--overlap-grad-reduce";
  const auto* stage = how.shard_ranks > 0 || how.zero == 3 ? "optim_grads_params" : "optim_grads";
  auto text = fmt::format("--use-megatron-fsdp --data-parallel-sharding-strategy {} --use-distributed-optimizer",
                          stage);
  if (how.shard_ranks > 0 && how.sharers() < how.replicas())
    text += fmt::format(" --num-distributed-optimizer-instances {} --outer-dp-sharding-strategy no_shard",
                        how.replicas() / how.sharers());
  return text;
}

std::string precision_of_megatron(const training_setting& how) {
  std::string text = "--bf16";
  if (how.computed_in == number_format::fp8)
    text += " --fp8-format hybrid";
  if (how.computed_in == number_format::mxfp8)
    text += " --fp8-format e4m3 --fp8-recipe mxfp8";
  if (how.computed_in == number_format::nvfp4)
    text += " --fp4-format e2m1";
  if (how.gradient_bytes == 2)
    text += " --grad-reduce-in-bf16";
  if (how.state_bytes < 12) {
    const auto* moments = how.state_bytes == 8 ? "bf16" : "fp8";
    text += fmt::format(" --use-precision-aware-optimizer --exp-avg-dtype {0} --exp-avg-sq-dtype {0}", moments);
  }
  if (how.offloads_states)
    text += " --optimizer-cpu-offload";
  return text;
}

/// What is computed again; with scores in tiles what is between the products.
void add_recomputation_of_megatron(lines& to, const language_model& m, const training_setting& how) {
  if (how.again == recomputation::full)
    to.emplace_back("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
  if (how.again != recomputation::selective)
    return;
  lines modules;
  if (how.attention == attention_kernel::unfused)
    modules.emplace_back("core_attn");
  else
    modules.emplace_back("layernorm");
  if (how.attention == attention_kernel::flash && m.latent.key_value_rank > 0)
    modules.emplace_back("mla_up_proj");
  if (how.attention == attention_kernel::flash && m.experts.count > 0)
    modules.emplace_back("moe_act");
  to.push_back(fmt::format("--recompute-granularity selective --recompute-modules {}", fmt::join(modules, " ")));
  if (how.attention == attention_kernel::flash && m.gated && how.computed_in != number_format::bf16)
    to.emplace_back("--activation-func-fp8-input-store");
}

std::string_view schedule_of_torchtitan(pipeline_schedule x) {
  switch (x) {
    case pipeline_schedule::interleaved_1f1b: return "Interleaved1F1B";
    case pipeline_schedule::all_forwards_first: return "GPipe";
    case pipeline_schedule::zb_v: return "ZBVZeroBubble";
    default: return "1F1B";
  }
}

/// A chunk of a stage; layers that are few are written one by one, as in "Ettt".
std::string piece_of_layout(const language_model& m, const stage_layers& has) {
  constexpr uint32_t few = 4;
  const auto layers = static_cast<uint32_t>(has.dense + has.experts);
  const auto text = layers <= few ? std::string(layers, 't') : fmt::format("t*{}", layers);
  const auto last = has.logits ? fmt::format("{}L", std::string(m.multi_token, 'm')) : "";
  return fmt::format("{}{}{}", has.embedding ? "E" : "", text, last);
}

/// Flags in lines of at most that width, one group per line where it fits; a flag's value may come in the next line.
std::string in_lines(const lines& groups, size_t columns) {
  const auto width = columns - std::string_view{" \\"}.size();
  auto cut_of = [&](const std::string& group) {
    const auto flag = group.rfind(" --", width);
    return flag != group.npos ? flag : group.rfind(' ', width);
  };
  lines all;
  for (auto group : groups) {
    for (auto cut = cut_of(group); group.size() > width && cut != group.npos; cut = cut_of(group)) {
      all.push_back(group.substr(0, cut));
      group.erase(0, cut + 1);
    }
    all.push_back(std::move(group));
  }
  return fmt::format("{}\n", fmt::join(all, " \\\n"));
}

} // namespace

std::string megatron_layout(const language_model& m, const training_setting& how) {
  std::string text;
  lines pieces;
  for (uint32_t chunk = 0; chunk < how.chunks_of_stage(); ++chunk)
    for (uint32_t stage = 0; stage < how.pp; ++stage)
      pieces.push_back(piece_of_layout(m, chunk_layers_of(m, how, stage, chunk)));
  for (size_t i = 0, alike = 0; i < pieces.size(); i += alike) {
    alike = 1;
    while (i + alike < pieces.size() - 1 && pieces[i + alike] == pieces[i])
      ++alike;
    const auto* end = i + alike < pieces.size() ? "|" : "";
    text += alike > 1 ? fmt::format("({}|)*{}", pieces[i], alike) : pieces[i] + end;
  }
  return text;
}

std::string megatron_options(const language_model& m, const training_setting& how, size_t columns) {
  lines all{sides_of_megatron(m, how)};
  add_pipeline_of_megatron(all, m, how);
  all.push_back(fmt::format("--micro-batch-size {} --global-batch-size {} --seq-length {}", how.micro_batch,
                            how.global_batch, m.sequence));
  if (how.sequence_parallel)
    all.emplace_back("--sequence-parallel");
  all.push_back(sharding_of_megatron(how));
  all.push_back(precision_of_megatron(how));
  add_recomputation_of_megatron(all, m, how);
  if (m.experts.count > 0 && how.ep > 1)
    all.push_back(how.paired_part() > 0
                    ? "--moe-token-dispatcher-type flex --moe-enable-deepep --overlap-moe-expert-parallel-comm"
                    : "--moe-token-dispatcher-type flex --moe-enable-deepep");
  return in_lines(all, columns);
}

std::string torchtitan_options(const language_model& m, const training_setting& how) {
  const bool pipeline = how.pp > 1;
  const auto shared = how.shard_ranks > 0 ? how.sharers() / how.cp : how.dp; // with context's ranks beside
  auto text = fmt::format("[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n"
                          "mixed_precision_param = \"bfloat16\"\nmixed_precision_reduce = \"{}\"\n\n[parallelism]\n"
                          "data_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
                          "fsdp_reshard_after_forward = \"{}\"\ntensor_parallel_degree = {}\n"
                          "context_parallel_degree = {}\npipeline_parallel_degree = {}\n",
                          pipeline ? how.global_batch / how.dp : how.micro_batch, how.global_batch, m.sequence,
                          how.gradient_bytes == 2 ? "bfloat16" : "float32", how.dp / std::max(1u, shared),
                          std::max(1u, shared), how.shard_ranks > 0 || how.zero == 3 ? "always" : "never", how.tp,
                          how.cp, how.pp);
  if (pipeline)
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                        schedule_of_torchtitan(how.schedule), how.micro_batch);
  if (pipeline && how.chunks > 1)
    text += fmt::format("pipeline_parallel_layers_per_stage = {}\n", how.chunk_layers(m.layers));
  if (m.experts.count > 0)
    text += fmt::format("expert_parallel_degree = {}\n", how.ep);
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n", name_of(how.again));
  if (how.computed_in != number_format::bf16)
    text += fmt::format("\n[model]\nconverters = [\"quantize.linear.{}\"]\n",
                        how.computed_in == number_format::fp8 ? "float8" : "mx");
  return text;
}

std::string launch_options(training_framework x, const language_model& m, const training_setting& how, size_t columns) {
  return x == training_framework::torchtitan ? torchtitan_options(m, how) : megatron_options(m, how, columns);
}

} // namespace ringmaster
