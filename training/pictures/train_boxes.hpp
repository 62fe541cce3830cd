#pragma once

#include "training/simulated/simulator.hpp"

#include <optional>
#include <vector>

namespace ringmaster {

enum class box_kind : uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  communication,
  loss,
  update,
  loading
};

inline constexpr uint32_t box_kinds = 8;

/// Consecutive operations of a rank of one kind on one micro-batch, usually those of a stage's layers. Each
/// communication is a box of its own.
struct train_box {
  box_kind kind{};
  uint32_t chunk = 0;                    ///< The rank's part of the model, counted from the first layers.
  std::optional<uint32_t> micro_batch{}; ///< For forward and backward.
  double start = 0, end = 0;             ///< In the cost model's unit of time.
};

struct memory_step {
  double start = 0; ///< It lasts until the next step.
  uint64_t held = 0;
};

struct rank_boxes {
  std::vector<train_box> own;      ///< In order of time.
  std::vector<train_box> aside;    ///< The same for the second stream.
  std::vector<memory_step> memory; ///< By time; known at the start of each of the rank's operations.
};

/// The contents of a picture of a training step.
struct train_boxes {
  std::vector<rank_boxes> ranks;
  uint32_t chunks = 1;        ///< The maximum over the ranks.
  uint32_t micro_batches = 0; ///< Of all ranks; numbered by their first sample.
  uint64_t samples = 0;       ///< Of each micro-batch; 0 if they differ.

  size_t count() const;
  /// A step that ends at `end` in this number of columns. A column shows the kind with most of its time, and equal
  /// neighbours are one box. Boxes then have no micro-batch.
  train_boxes in_columns(uint32_t columns, double end) const;
};

/// Requires an outcome with events.
train_boxes boxes_of(const training::training_outcome& found);

} // namespace ringmaster
