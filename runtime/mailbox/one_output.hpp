#pragma once

#include "runtime/reduction/reducer.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstddef>
#include <span>

namespace ringmaster {

/// Whether `output_of` knows the kind.
bool has_one_output(proto::CollectiveKind kind);

/// Computes the output of `request.rank` from all ranks' inputs, with the same bits as a shared-memory operation, which
/// adds in rank order. `inputs`: by rank; those that the kind does not use may be nullptr. `combine`: where the kind
/// reduces; the inputs of PREMUL_SUM have been multiplied. `out` overlaps no input.
void output_of(proto::CollectiveKind kind, const plan_request& request, const reducer* combine, uint64_t element_bytes,
               std::span<const std::byte* const> inputs, std::byte* out);

} // namespace ringmaster
