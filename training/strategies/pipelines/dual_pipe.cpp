// DualPipe (DeepSeek-V3 Technical Report, 2024): two pipelines in opposite directions on the same ranks, each for half
// of the micro-batches, so a rank has two stages, r and p-1-r, and parameters are held twice.
// With F&B the time of a forward beside a backward, one block, the bubble is (p/2-1)(F&B + B - 3W), B being both
// halves; here a rank does one after the other, F&B = F + B, and F as long as the half by the input. p + 1
// micro-batches are held. With --experts every second layer is of experts, which that number of neighbours of a stage
// share: in a block the two alternate, so that one's dispatch and combine go beside the other's layer; elsewhere
// nothing hides them. The published order needs an even p and an even number of micro-batches, 2p or more.
#include "training/strategies/pipelines/pipeline.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

/// Writes a rank's steps by directions as it sees them: the near one, 0, is that whose beginning is closer.
class dual_pipe_steps {
public:
  explicit dual_pipe_steps(bool second_half) : second_half_(second_half) {}

  void forward(uint32_t way) { steps_.push_back({kind::forward, forwards_[way]++, chunk(way)}); }
  void backward(uint32_t way, bool split = false) {
    auto micro_batch = backwards_[way]++;
    steps_.push_back({split ? kind::backward_input : kind::backward, micro_batch, chunk(way)});
    if (split)
      owed_.push_back({kind::backward_weight, micro_batch, chunk(way)});
  }
  /// A forward beside a backward: what both make goes on when both have ended.
  void forward_and_backward(uint32_t forward_way) {
    forward(forward_way);
    steps_.back().with_next = true;
    backward(1 - forward_way);
  }
  void weight() {
    if (owed_.empty())
      return;
    steps_.push_back(owed_.front());
    owed_.pop_front();
  }
  pipeline_order order() { return pipeline_order::listed(std::move(steps_)); }

private:
  uint32_t chunk(uint32_t way) const { return second_half_ ? 1 - way : way; }

  bool second_half_;
  uint32_t forwards_[2]{}, backwards_[2]{};
  std::deque<pipeline_step> owed_;
  std::vector<pipeline_step> steps_;
};

pipeline_order dual_pipe_order(uint32_t p, uint32_t r, uint32_t each_way) {
  const auto half = p / 2, near = std::min(r, p - 1 - r);
  dual_pipe_steps steps{r >= half};
  for (uint32_t i = 0; i < 2 * (half - near - 1); ++i)
    steps.forward(0);
  for (uint32_t i = 0; i < near + 1; ++i) {
    steps.forward(0);
    steps.forward(1);
  }
  for (uint32_t i = 0; i < half - near - 1; ++i) {
    steps.backward(1, true);
    steps.weight();
    steps.forward(1);
  }
  for (uint32_t i = 0; i < each_way - p + near + 1; ++i) {
    if (i == 0 && near == half - 1) { // the two ranks in the middle would wait for each other
      steps.forward(0);
      steps.backward(1);
    } else {
      steps.forward_and_backward(0);
    }
    steps.forward_and_backward(1);
  }
  for (uint32_t i = 0; i < half - near - 1; ++i) {
    steps.backward(1);
    steps.forward_and_backward(1);
  }
  bool split = false;
  for (uint32_t i = 0; i < near + 1; ++i) {
    split = split || (i == (near + 1) / 2 && near % 2 == 1);
    steps.backward(1, split);
    split = split || (i == (near + 1) / 2 && near % 2 == 0);
    steps.backward(0, split);
  }
  for (uint32_t i = 0; i < half - near - 1; ++i) {
    steps.weight();
    steps.backward(0, true);
  }
  for (uint32_t i = 0; i < near + 1; ++i)
    steps.weight();
  return steps.order();
}

strategy run_dual_pipe(rank& self, const model& m) {
  const auto shape = pipeline_mesh(m, self.world_size());
  auto order = dual_pipe_order(shape.pipeline, shape.stage(self.index()), pipeline_micro_batches(m, shape) / 2);
  return run_pipeline(self, m, {shape, std::move(order), 2, placement::both_ways});
}

caf::error check_dual_pipe(const model& m, uint32_t world_size) {
  auto refused = [](std::string why) { return invalid("dualpipe: " + std::move(why)); };
  RETURN_ERROR(check_pipeline(m, world_size));
  const auto shape = pipeline_mesh(m, world_size);
  RETURN_ERROR(check_shared_layers(m, shape));
  const auto count = pipeline_micro_batches(m, shape);
  if (shape.pipeline % 2 != 0)
    return refused(fmt::format("{} cannot be halved: it takes an even number of pipeline-parallel ranks",
                               counted(shape.pipeline, "stage")));
  if (count % 2 != 0 || count < 2 * shape.pipeline)
    return refused(fmt::format("{} stages need an even number of micro-batches, {} or more, not {}", shape.pipeline,
                               2 * shape.pipeline, count));
  return caf::none;
}

} // namespace

const known_strategy dual_pipe{.name = "dualpipe",
                               .what = "DualPipe: two pipelines in opposite directions, parameters held twice",
                               .run = run_dual_pipe,
                               .check = check_dual_pipe,
                               .shape = pipeline_mesh,
                               .shares = sharing::stages,
                               .held = holds_one_a_stage,
                               .copies = 2,
                               .shares_experts = true,
                               .stand_in = &one_forward_one_backward};

} // namespace ringmaster::training
