#include "runtime/training/transformer/plans/training_framework.hpp"

namespace ringmaster::training {

namespace {

std::string_view why_not_by_megatron(const parallel_setting& how) {
  using enum pipeline_schedule;
  if (how.shape.pipeline > 1 && how.schedule != one_f_one_b && how.schedule != interleaved_1f1b)
    return "it has the schedules 1f1b and interleaved";
  if (how.shape.pipeline > 1 && how.zero > 1)
    return "in pipelines it shares the optimizer's states alone";
  if (how.offloads_activations)
    return "it does not off-load activations of a plan like this";
  return {};
}

std::string_view why_not_by_torchtitan(const parallel_setting& how) {
  using enum pipeline_schedule;
  const bool shares = how.replicas() > 1;
  if (how.shape.pipeline > 1 && (how.schedule == zb_h1 || how.schedule == zb_h2 || how.schedule == dualpipe))
    return "it has the schedules 1f1b, interleaved, gpipe and zb-v";
  if (shares && how.shard == 0 && how.zero < 2)
    return "it shares weights by fsdp and hsdp, in pipelines as zero2 or zero3";
  if (how.shape.tensor > 1 && !how.sequence_parallel)
    return "its tensor parallelism is sequence parallel";
  if (how.attention != attention_kernel::flash)
    return "its attention is in tiles";
  if (how.state_bytes != 12)
    return "its optimizer keeps states in float32";
  if (how.offloads_states || how.offloads_activations)
    return "it off-loads all weights and states, or nothing";
  return how.computed_in == number_format::nvfp4 ? "it has no nvfp4" : std::string_view{};
}

} // namespace

std::string_view name_of(training_framework x) {
  return x == training_framework::any ? "any" : x == training_framework::megatron ? "megatron" : "torchtitan";
}

std::string_view why_not_by(training_framework x, const parallel_setting& how) {
  return x == training_framework::any        ? std::string_view{}
         : x == training_framework::megatron ? why_not_by_megatron(how)
                                             : why_not_by_torchtitan(how);
}

} // namespace ringmaster::training
