#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringmaster::training {

/// Ranks at equal distances, which have a collective together: the world, or a line along an axis of a mesh.
struct group {
  uint32_t first = 0;
  uint32_t count = 1;
  uint32_t stride = 1;

  uint32_t rank(uint32_t index) const { return first + index * stride; }
  bool contains(uint32_t rank) const {
    return rank >= first && (rank - first) % stride == 0 && (rank - first) / stride < count;
  }
  /// Of a rank in it.
  uint32_t index_of(uint32_t rank) const { return (rank - first) / stride; }
  uint64_t last() const { return first + uint64_t{count - 1} * stride; }
  friend bool operator==(const group&, const group&) = default;
};

/// The ranks that differ from one along an axis only, in a world that is a box of such sides: tensor, context,
/// expert, data, pipeline, or any other; along the first side ranks are numbered first.
inline group line(std::span<const uint32_t> sides, size_t axis, uint32_t rank) {
  uint32_t stride = 1;
  for (size_t i = 0; i < axis; ++i)
    stride *= sides[i];
  return {rank - rank / stride % sides[axis] * stride, sides[axis], stride};
}

/// A world as a box: ranks are numbered along the tensor axis first, whose talk is the most, then context, data and
/// pipeline (Narayanan et al. 2021).
struct mesh {
  uint32_t tensor = 1;
  uint32_t data = 1;
  uint32_t pipeline = 1;
  uint32_t context = 1; ///< Ranks that share the positions of samples.

  uint32_t size() const { return tensor * context * data * pipeline; }
  uint32_t tensor_index(uint32_t rank) const { return rank % tensor; }
  uint32_t context_index(uint32_t rank) const { return rank / tensor % context; }
  uint32_t data_index(uint32_t rank) const { return rank / (tensor * context) % data; }
  uint32_t stage(uint32_t rank) const { return rank / stage_size(); }

  group tensor_group(uint32_t rank) const { return {rank - tensor_index(rank), tensor, 1}; }
  group context_group(uint32_t rank) const { return {rank - context_index(rank) * tensor, context, tensor}; }
  group data_group(uint32_t rank) const { return {rank - data_index(rank) * tensor * context, data, tensor * context}; }
  /// Those that have the same weights, by positions and then by samples.
  group replica_group(uint32_t rank) const {
    return {first_of_stage(rank) + tensor_index(rank), context * data, tensor};
  }
  /// `count` neighbours of a stage, and the ranks with the same place among their neighbours.
  group neighbours(uint32_t rank, uint32_t count) const { return {rank - rank % stage_size() % count, count, 1}; }
  group alike_neighbours(uint32_t rank, uint32_t count) const {
    return {first_of_stage(rank) + rank % stage_size() % count, stage_size() / count, count};
  }
  /// The same place in another stage.
  uint32_t at_stage(uint32_t rank, uint32_t other) const { return rank % stage_size() + other * stage_size(); }

  uint32_t stage_size() const { return tensor * context * data; }

  friend bool operator==(const mesh&, const mesh&) = default;

private:
  uint32_t first_of_stage(uint32_t rank) const { return rank - rank % stage_size(); }
};

} // namespace ringmaster::training
