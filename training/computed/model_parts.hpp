#pragma once

#include "messages/byte_block.hpp"
#include "training/computed/kept_values.hpp"
#include "training/computed/training_job.hpp"

#include <optional>

namespace ringmaster::training {

/// Which owner has which parts of the model as it was before one step, and how other parts are assembled from them.
class model_parts {
public:
  explicit model_parts(const training_job& job) : job_(&job) {}

  void add(const kept_part& what, uint32_t owner) {
    ++owners_.try_emplace(what, holders{owner, 0}).first->second.count;
  }
  /// Whether the loss of one owner may be the loss of a part.
  bool some_are_held_once() const;

  struct source {
    kept_part what;
    uint32_t owner = 0;
  };
  /// Parts that together have all elements of this one; none: some element is in no part.
  std::optional<std::vector<source>> sources_of(const kept_part& wanted) const;
  /// The first weight or optimizer state that the parts do not cover; none: they have all of the model.
  std::optional<kept_part> missing() const;
  /// The fewest parts that together have the whole model and the optimizer's state. Errors: device_lost, with what is
  /// missing: "the weight of layer 3".
  caf::expected<std::vector<source>> whole() const;

private:
  struct holders {
    uint32_t first = 0, count = 0;
  };

  std::vector<kept_part> all_of_model() const;

  const training_job* job_;
  std::map<kept_part, holders> owners_;
};

/// All of a layer's weight, or of its optimizer state.
inline kept_part whole_part(value_kind kind, uint32_t layer) {
  return {kind, layer, {}, {}};
}

/// Whether a model with this number of layers can have such a part.
inline bool is_possible(const kept_part& x, size_t layers) {
  return x.layer < layers && x.part.index < x.part.count && x.tensor.index < x.tensor.count;
}

/// "the weight of layer 3".
std::string text_of(const kept_part& whole);

uint64_t bytes_of(const training_job& job, const kept_part& x);

/// Of the whole model and the optimizer's state.
uint64_t model_bytes(const training_job& job);

/// Copies the elements that two parts of one layer, and of one kind, have in common.
void copy_common(const training_job& job, const kept_part& from, std::span<const std::byte> source, const kept_part& to,
                 std::span<std::byte> target);

/// Writes all of `target`: the elements of `wanted` that these parts have, and zeros elsewhere, as in the padding at
/// the end of a layer's last shard. An optimizer works on padding as on any element, so it has to be a number.
void assemble_part(const training_job& job, const std::map<kept_part, byte_block>& from, const kept_part& wanted,
                   std::span<std::byte> target);

/// An activation, or its gradient, as a matrix with one row for each sample. A column shard is stored as a matrix of
/// its own columns. All shards take as much memory as the widest one: narrower shards end in padding.
struct column_shards {
  uint64_t rows = 0;
  uint64_t row_bytes = 0; ///< Of the whole.
  uint64_t element_bytes = 0;
  uint32_t count = 1; ///< The number of shards.

  /// The shards of `x`, or of the value of which `x` is a shard.
  column_shards(const training_job& job, const value_tag& x, uint32_t shards);

  /// Of one shard: its columns, and its memory with the padding.
  uint64_t bytes_filled(uint32_t index) const;
  uint64_t bytes_each() const;

  /// Copies from the whole to one shard, or back. `take` sets the padding to 0.
  void take(uint32_t index, const std::byte* whole, std::byte* shard) const;
  void put(uint32_t index, const std::byte* shard, std::byte* whole) const;
};

} // namespace ringmaster::training
