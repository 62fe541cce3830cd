#include "planner/estimates/training_setting.hpp"

#include "runtime/invariants/ensure.hpp"
#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

std::string_view name_of(pipeline_schedule x) {
  static const known_strategy* const rows[] = {
    &gpipe, &one_forward_one_backward, &interleaved, &zero_bubble_h1, &zero_bubble_h2, &zero_bubble_v, &dual_pipe};
  return rows[static_cast<size_t>(x)]->name;
}

pipeline_schedule schedule_of(std::string_view named) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(pipeline_schedule::dualpipe); ++i)
    if (name_of(static_cast<pipeline_schedule>(i)) == named)
      return static_cast<pipeline_schedule>(i);
  return pipeline_schedule::one_f_one_b;
}

std::string_view name_of(recomputation x) {
  return x == recomputation::none ? "none" : x == recomputation::selective ? "selective" : "full";
}

std::string_view name_of(attention_kernel x) {
  return x == attention_kernel::flash ? "flash" : "unfused";
}

std::string_view name_of(counted_scores x) {
  return x == counted_scores::causal ? "causal" : "full";
}

parallel_setting training_setting::simulated() const {
  parallel_setting result = *this;
  result.cp = result.ep = 1;
  return result;
}

double training_setting::reduced_bytes() const {
  const bool gathers = zero > 0 || shard_ranks > 0;
  return gathers ? (gradient_bytes + bytes_of(computed_in).gathered) / 2 : gradient_bytes;
}

uint32_t training_setting::chunk_layers(uint32_t layers) const {
  const auto places = pp * chunks_of_stage();
  ensure(places > 0, "a pipeline has stages");
  return layers % places == 0 ? layers / places : (layers + 1 + places) / places;
}

double training_setting::paired_part() const {
  // Megatron-LM pairs where stages have several chunks, or where there is one stage and it is whole: after the first
  // forwards, 2 (p-1) + (v-1) p and one more of m v. It refuses that with full recomputation. DeepSeek-AI 2024's
  // DualPipe pairs in m - 1.5 p + 1 of m.
  const double m = micro_batches(), p = pp, v = chunks;
  if (again == recomputation::full && schedule != pipeline_schedule::dualpipe)
    return 0;
  if (pp == 1)
    return shard_ranks == 0 ? (m - 1) / m : 0;
  if (schedule == pipeline_schedule::dualpipe)
    return std::clamp((m - 1.5 * p + 1) / m, 0.0, 1.0);
  if (schedule != pipeline_schedule::interleaved_1f1b || chunks == 1 || micro_batches() == pp)
    return 0;
  return std::clamp((m * v - 2 * (p - 1) - (v - 1) * p - 1) / (m * v), 0.0, 1.0);
}

} // namespace ringmaster::training
