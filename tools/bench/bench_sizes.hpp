#pragma once

#include "tools/bench/bench_options.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// The algorithms to measure: the one that is named, or all of the kind.
std::vector<std::string> algorithms_for(const bench_options& x);

/// The sizes to measure, in bytes, ascending.
std::vector<uint64_t> sizes_of(const bench_options& x);

/// Bytes of memory that a device needs: its input and output at the largest size, aligned, and scratch.
uint64_t memory_for(const bench_options& x);

} // namespace ringmaster
