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

/// What a rank does for some time without a break: operations of one kind on one micro-batch, mostly those of a stage's
/// layers. Each communication is its own.
struct train_box {
  box_kind kind{};
  uint32_t chunk = 0;                    ///< Which of the rank's parts of the model, from the first layers on.
  std::optional<uint32_t> micro_batch{}; ///< Of forwards and backwards.
  double start = 0, end = 0;             ///< In the cost model's unit.
};

struct memory_step {
  double start = 0; ///< Until the next one's.
  uint64_t held = 0;
};

struct rank_boxes {
  std::vector<train_box> own;      ///< In order of time.
  std::vector<train_box> aside;    ///< The same of the second stream.
  std::vector<memory_step> memory; ///< The same; known where one of the rank's own operations starts.
};

/// A step of training as its picture shows it.
struct train_boxes {
  std::vector<rank_boxes> ranks;
  uint32_t chunks = 1;        ///< Of the rank that has the most.
  uint32_t micro_batches = 0; ///< Distinct ones, of all ranks; numbered by their first sample.
  uint64_t samples = 0;       ///< Of each of them; 0: they differ.

  size_t count() const;
  /// A step of time `end` in so many columns: each shows what most of its time is for, and neighbours that show the
  /// same are one box. No micro-batch is known then.
  train_boxes in_columns(uint32_t columns, double end) const;
};

/// Of an outcome with events.
train_boxes boxes_of(const training::training_outcome& found);

} // namespace ringmaster
