#pragma once

#include "client/parallel/tensor.hpp"
#include "client/rank_communicator.hpp"
#include "training/layouts/tensor_layout.hpp"

namespace ringmaster::parallel {

// Who has what, by a layout: rank = data index x T + tensor index. T neighbours share each layer, and the ranks of one
// tensor index have the same part of it.

/// The rank's slice of the samples, which are x's first axis: [samples x ...] gives [its samples x ...]. Errors:
/// invalid_argument where the layout is of another number of samples.
caf::expected<tensor> samples_of(const tensor& x, const training::tensor_layout& layout, uint32_t rank);
/// These samples, in this order, as a sample_partition gives them. Errors: out_of_range.
caf::expected<tensor> take_samples(const tensor& x, std::span<const uint32_t> samples);

/// The rank's part of a layer's weight: of [inputs x outputs], [inputs x outputs/T] where it is cut by columns, and
/// [inputs/T x outputs] by rows. Errors: invalid_argument where the weight has another shape than the layer.
caf::expected<tensor> parameter_of(const tensor& weight, const training::cut_layer& layer,
                                   const training::tensor_layout& layout, uint32_t rank);

/// A rank's handles of its two groups, in which it has its tensor index, and its data index, as rank.
struct rank_groups {
  rank_communicator tensor; ///< Those that share its layers.
  rank_communicator data;   ///< Those that have the same part of them.
};

/// Every rank of the world calls it, and waits for the others. Errors: invalid_argument where the world has not as many
/// ranks as the layout; those of rank_communicator::split.
caf::expected<rank_groups> split_world(rank_communicator& world, const training::tensor_layout& layout,
                                       caf::timespan limit = std::chrono::seconds{30});

} // namespace ringmaster::parallel
