#pragma once

#include "client/parallel/tensor.hpp"
#include "client/parallel/tensor_group.hpp"

namespace ringmaster::parallel {

// ZeRO's third stage (Rajbhandari et al. 2020): of N ranks that have different samples each has an Nth of every
// parameter; it is gathered for a product and dropped after it, and of the gradients' sums each rank gets its Nth.
// All shards have the same length; padding is 0.

/// Numbers of a shard: elements / ranks, rounded up. `ranks` > 0.
uint64_t shard_elements(uint64_t elements, uint32_t ranks);

/// What a rank has of the whole: [shard_elements]. Errors: invalid_argument for a rank that there is not.
caf::expected<tensor> shard_of(const tensor& whole, uint32_t rank, uint32_t ranks);

/// All ranks' shards as the whole, in its shape. A rank sends N-1 shards. Errors: invalid_argument where the shard is
/// not one of such a whole; those of tensor_group.
caf::expected<tensor> gather_parameter(tensor_group& over, const tensor& shard, std::vector<uint64_t> shape);

/// The ranks' gradients by the whole parameter, each of its own samples: this rank's shard of their sum. A rank sends
/// N-1 shards. Errors: those of tensor_group.
caf::expected<tensor> reduce_gradient(tensor_group& over, const tensor& gradient);

} // namespace ringmaster::parallel
