#pragma once

#include "runtime/training/rank.hpp"

#include <caf/error.hpp>

#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace ringmaster::training {

/// All ranks have other samples.
inline mesh data_parallel_shape(const model&, uint32_t world_size) {
  return {1, world_size, 1};
}

/// A strategy by name. Each is a file below strategies/, which says whose it is and what it costs.
struct known_strategy {
  std::string_view name;
  std::string_view what; ///< In a line.
  strategy (*run)(rank& self, const model& m);
  /// Why it cannot train this model on so many ranks; none: it can.
  caf::error (*check)(const model& m, uint32_t world_size);
  /// How it sees a world that it accepts.
  mesh (*shape)(const model& m, uint32_t world_size) = data_parallel_shape;
  bool staged = false; ///< A pipeline, which goes by m.zero, too.
  bool in_micro_batches = true; ///< Else it works on all samples of a rank at once.
};

std::span<const known_strategy> strategies();
/// Null where there is none.
const known_strategy* strategy_of(std::string_view name);

// The entries of the table, one a file.
extern const known_strategy data_parallel, accumulating_data_parallel, weight_sharded, zero_1, zero_2, zero_3,
  whole_batch_pipeline, gpipe, one_forward_one_backward, interleaved, zero_bubble_h1, zero_bubble_h2, zero_bubble_v,
  dual_pipe, tensor_parallel, three_dimensional, sharded_pipeline, overlapping_data_parallel;

// What several of them need.

/// The contiguous samples of one of `parts` ranks, all as many: global_batch / parts.
range samples_of(const model& m, uint32_t part, uint32_t parts);
/// Of each of `parts` ranks, with the last one's rest.
uint64_t micro_batch_count(const model& m, uint32_t parts);
/// The samples, in micro-batches.
std::vector<range> micro_batches(const model& m, range samples);
/// The contiguous layers of one of `parts` stages; the first have one more where they do not divide.
range layers_of(const model& m, uint32_t part, uint32_t parts);

caf::error check_data_parallel(const model& m, uint32_t parts);
/// Whether m.tensor x m.data, where they are given, divide the world.
caf::error check_mesh(const model& m, uint32_t world_size);

} // namespace ringmaster::training
