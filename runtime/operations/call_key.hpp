#pragma once

#include <cstdint>
#include <utility>

namespace ringmaster {

/// A call: who made it, a number chosen at random, and its number among the caller's calls (proto::CallId).
using call_key = std::pair<uint64_t, uint64_t>;

} // namespace ringmaster
