#pragma once

#include "tools/bench/bench_options.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// The algorithms that are measured: the one that was asked for, or all that the kind has.
std::vector<std::string> algorithms_for(const bench_options& x);

/// What is measured one after the other, in bytes, ascending.
std::vector<uint64_t> sizes_of(const bench_options& x);

/// Bytes of memory that one device needs: its input and output at the largest size, with room to align them, and
/// scratch.
uint64_t memory_for(const bench_options& x);

} // namespace ringmaster
