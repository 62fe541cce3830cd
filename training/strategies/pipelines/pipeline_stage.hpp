#pragma once

#include "training/strategies/pipelines/pipeline.hpp"

#include <algorithm>
#include <memory>

namespace ringmaster::training {

/// What of a micro-batch in a stage is there for some only.
struct passage_ends {
  activation output;             ///< The model's, until the loss.
  activation_gradient by_output; ///< Where the next stage is on this same rank.
};

/// The micro-batches that are in a stage, each with its layers' inputs. Large pipelines have millions: they lie in a
/// ring, and a rank meets them in its order.
class passages {
public:
  explicit passages(size_t layers = 1) : layers_(layers), inputs_(layers), entered_(1), ends_(1) {}

  void enter(uint32_t micro_batch) {
    if (micro_batch - oldest_ > mask_)
      grow();
    newest_ = std::max(newest_, micro_batch + 1);
    entered_[micro_batch & mask_] = true;
  }
  activation& input(uint32_t micro_batch, size_t layer) { return inputs_[(micro_batch & mask_) * layers_ + layer]; }
  /// Of a layer, kept where the weight's gradient comes later.
  activation_gradient& by_output(uint32_t micro_batch, size_t layer) {
    by_outputs_.resize(inputs_.size());
    return by_outputs_[(micro_batch & mask_) * layers_ + layer];
  }
  /// Of a layer, where ranks share positions.
  attention_keys& keys(uint32_t micro_batch, size_t layer) {
    keys_.resize(inputs_.size());
    return keys_[(micro_batch & mask_) * layers_ + layer];
  }
  passage_ends& ends(uint32_t micro_batch) {
    auto& found = ends_[micro_batch & mask_];
    if (!found)
      found = std::make_unique<passage_ends>();
    return *found;
  }
  void leave(uint32_t micro_batch) {
    entered_[micro_batch & mask_] = false;
    while (oldest_ < newest_ && !entered_[oldest_ & mask_])
      ++oldest_;
  }

private:
  void grow();

  size_t layers_;
  uint32_t mask_ = 0; ///< The ring's size, a power of two, less one.
  uint32_t oldest_ = 0, newest_ = 0;
  std::vector<activation> inputs_;
  std::vector<activation_gradient> by_outputs_; ///< As many, or none.
  std::vector<attention_keys> keys_;            ///< The same.
  std::vector<bool> entered_;
  std::vector<std::unique_ptr<passage_ends>> ends_;
};

/// A stage of the model on this rank.
struct pipeline_stage {
  bool first = false, last = false;
  uint32_t previous = 0, next = 0; ///< The ranks that have these.
  uint32_t previous_chunk = 0, next_chunk = 0;
  range layers;
  range samples; ///< Of the data-parallel ranks that it is among: in `micro_batches` micro-batches, of which it has some.
  uint32_t micro_batches = 0, first_micro_batch = 0;
  std::vector<weight> weights;
  std::vector<optimizer_state> states;
  std::vector<weight_gradient> sums;
  passages under_way;
};

/// The stage that a rank has as the given chunk.
pipeline_stage stage_of(const model& m, const pipeline_plan& plan, uint32_t rank, uint32_t chunk);

} // namespace ringmaster::training
