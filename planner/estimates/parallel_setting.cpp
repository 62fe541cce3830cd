#include "planner/estimates/parallel_setting.hpp"

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

} // namespace ringmaster::training
