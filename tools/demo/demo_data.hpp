#pragma once

#include "messages/gpu_sim.pb.h"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// Inputs for an all-reduce whose result has the same bits in whatever order it is computed: multiples of 1/1024 for
/// sums, powers of two for products. So the plain loop below judges every algorithm.
std::vector<double> demo_input(gpu_sim::ReduceOp op, uint64_t count, uint64_t seed, uint32_t rank);

/// The serial all-reduce, rank by rank.
std::vector<double> serial_all_reduce(gpu_sim::ReduceOp op, const std::vector<const std::vector<double>*>& inputs);

} // namespace ringmaster
