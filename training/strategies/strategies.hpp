#pragma once

#include "training/language/rank.hpp"

#include <caf/error.hpp>

#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace ringmaster::training {

/// All ranks have different samples.
inline mesh data_parallel_shape(const model&, uint32_t world_size) {
  return {1, world_size, 1};
}

/// What ranks with the same samples share. Ranks with different samples are data parallel.
enum class sharing : uint8_t {
  none,   ///< No two ranks have the same samples.
  layers, ///< Each layer: m.tensor ranks, and m.data such groups.
  stages, ///< Stages of layers, each of m.tensor x m.data ranks; m.zero applies, too.
};

/// How a strategy cuts a rank's samples into micro-batches of m.micro_batch.
enum class batch_cut : uint8_t {
  always,         ///< Of one sample unless m.micro_batch is given.
  when_requested, ///< All samples at once unless m.micro_batch is given.
  never,
};

/// What m.chunks is to a strategy.
enum class chunk_use : uint8_t {
  none,           ///< Nothing: a rank has one part of the model.
  parts,          ///< Parts of the model that a rank has, one after the other.
  there_and_back, ///< Nothing: a rank has two parts, one on the way there and one on the way back.
  buckets         ///< Layers whose gradients are summed at once.
};

/// What data-parallel ranks have a part of only, and gather when they need it.
enum class sharded : uint8_t { nothing, the_model, a_stage };

/// Micro-batches that a rank has in all of its layers at one time at least, of `count`.
using micro_batches_held = uint64_t(const model& m, const mesh& shape, uint64_t count);
inline uint64_t holds_one(const model&, const mesh&, uint64_t) {
  return 1;
}

/// A strategy by name, and its properties. Each is a file below strategies/, whose first comment has its source and its
/// cost. Searches, bounds and options read the properties; only users select a strategy by name.
struct known_strategy {
  std::string_view name;
  std::string_view what; ///< In a line.
  strategy (*run)(rank& self, const model& m) = nullptr;
  /// Why it cannot train this model on this number of ranks; none: it can.
  caf::error (*check)(const model& m, uint32_t world_size) = nullptr;
  /// How it sees a world that it accepts.
  mesh (*shape)(const model& m, uint32_t world_size) = data_parallel_shape;
  sharing shares = sharing::none;
  batch_cut cut = batch_cut::always;
  chunk_use chunks = chunk_use::none;
  sharded gathers = sharded::nothing;
  micro_batches_held* held = holds_one;
  uint32_t copies = 1;            ///< Of its stage's parameters that a rank holds.
  beyond needs = beyond::nothing; ///< Only cost models that know it can simulate it, and no layers compute it.
  bool shares_positions = false;  ///< It uses m.context, if that is given: see `needs_of`.
  bool shares_experts = false;    ///< The same of m.experts.
  uint32_t usual_chunks = 2;      ///< The default of m.chunks.
  bool by_columns = false; ///< Of the ranks that share a layer each makes columns of its output: see layer::by_columns.
  bool orders_parts = false;     ///< It uses m.virtual_ranks.
  bool prefetches = false;       ///< It uses m.prefetch.
  bool shards_in_groups = false; ///< It uses m.shard_ranks.
  bool hides_sums = false;       ///< Sums take no time that a bound could count: they overlap a backward, or go in hops.
  bool of_another = false;       ///< With all its choices made it is another strategy: a search leaves it to that one.
  bool plain = false;            ///< The one that others are compared with.
  bool keeps_sums
    = false; ///< Gradients of whole weights are added up until a step's end: there is room for all of them.
  /// In worlds that it refuses, as those are that have lost ranks; it has layers cut alike.
  const known_strategy* stand_in = nullptr;

  /// Its ranks pass micro-batches on from stage to stage.
  bool is_pipeline() const { return cut == batch_cut::always && shares == sharing::stages; }
};

/// In the order in which they are listed to people. A reference to the table; see `register_strategy`.
std::span<const known_strategy> strategies();
/// Null where there is none.
const known_strategy* strategy_of(std::string_view name);

/// Adds a strategy to `strategies()`: from then on it is found, simulated, searched and listed as those that are built
/// in. Its texts must stay where they are. Called when a program starts, before anything else looks at the strategies:
/// pointers and spans of them do not outlive it. Errors: invalid_argument for a name that is empty, "all" or there
/// already, and for a missing function.
caf::error register_strategy(const known_strategy& added);

/// The most samples that one rank has of a step; 0: the number of ranks does not fit the model's sizes.
uint64_t samples_of_a_rank(const known_strategy& which, const model& m, uint32_t world_size);
/// The default of m.micro_batch: one sample, or all of a rank's. The strategy accepts the model with
/// micro-batches of one sample.
uint64_t default_micro_batch(const known_strategy& which, const model& m, uint32_t world_size);
/// What it does beside working on whole samples and layers when it trains this model.
std::vector<beyond> needs_of(const known_strategy& which, const model& m);
/// Parts of the model that a rank has one after the other.
uint32_t chunks_of(const known_strategy& which, const model& m);

/// The table: its entries, a file each, in the order in which they are listed to people.
#define RINGMASTER_STRATEGIES                                                                                          \
  data_parallel, accumulating_data_parallel, overlapping_data_parallel, ordered_data_parallel, weight_sharded, zero_1, \
    overlapping_zero_1, zero_2, zero_3, fully_sharded, hybrid_sharded, whole_batch_pipeline, gpipe,                    \
    one_forward_one_backward, interleaved, zero_bubble_h1, zero_bubble_h2, zero_bubble_v, dual_pipe, tensor_parallel,  \
    naive_tensor_parallel, context_parallel, gathering_context_parallel, expert_parallel, three_dimensional,           \
    sharded_pipeline
extern const known_strategy RINGMASTER_STRATEGIES;

// What several of them need.

/// The contiguous samples of one of `parts` ranks, the same number for all: global_batch / parts. If they may be uneven, the
/// first ranks have one more.
range samples_of(const model& m, uint32_t part, uint32_t parts);
/// Of each of `parts` ranks, with the last one's rest. All ranks have the same number, since a collective may follow each.
uint64_t micro_batch_count(const model& m, uint32_t parts);
/// Micro-batch `index` of the `count` into which a rank's samples are cut.
range micro_batch_of(const model& m, range samples, uint64_t count, uint64_t index);
/// The samples of one of `parts` ranks, in micro-batches.
std::vector<range> micro_batches(const model& m, uint32_t part, uint32_t parts);
/// Of samples that belong to one rank.
std::vector<range> micro_batches(const model& m, range samples);
/// The contiguous layers of one of `parts` stages; the first have one more where they do not divide.
range layers_of(const model& m, uint32_t part, uint32_t parts);

/// Ranks that share a layer's experts, in a strategy that has them. The default is 8, or the largest of 4, 2, 1 that divides
/// the world.
uint32_t expert_ranks(const model& m, uint32_t world_size);
/// Whether a layer has experts: every second one, from the second on, or from the first that may have them.
inline bool is_of_experts(const model& m, uint64_t layer) {
  return layer % 2 == 1 && layer >= m.dense_first;
}

caf::error check_data_parallel(const model& m, uint32_t parts);
/// Whether m.tensor x m.context x m.data, where they are given, divide the world.
caf::error check_mesh(const model& m, uint32_t world_size);

} // namespace ringmaster::training
