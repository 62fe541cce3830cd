#pragma once

#include "client/parallel/tensor_group.hpp"

namespace ringmaster::parallel {

// Collectives out of nothing but sends and receives, to read and to compare with the library's. Any number of ranks and
// of numbers. Errors: those of tensor_group::pass.

/// A ring (Patarasuk and Yuan 2009). x is cut into N blocks, no two of which differ by more than one number. In N-1
/// rounds each rank sends a block to the next one and adds what comes to the own numbers: then it has one block's sums.
/// In N-1 more rounds sums go around. A rank sends 2(N-1)/N of x, in 2(N-1) messages. Sums, everywhere; all ranks have
/// the same bits.
caf::expected<std::vector<float>> own_all_reduce(tensor_group& over, std::span<const float> x);

/// By pairs: in round i rank r sends to rank r + i and receives from rank r - i. A rank sends (N-1)/N of its input.
caf::expected<std::vector<float>> own_all_to_all(tensor_group& over, std::span<const float> blocks);

} // namespace ringmaster::parallel
