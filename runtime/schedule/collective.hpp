#pragma once

#include "messages/collective_kind.hpp"
#include "messages/types.pb.h"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace ringmaster {

// What each kind of collective means, apart from any algorithm: which elements a rank has and gets. MPI's and NCCL's
// words and counts.

/// One collective, as one rank sees it.
struct plan_request {
  uint32_t world_size = 1;
  uint32_t rank = 0;
  /// Elements. ALL_REDUCE, REDUCE, BROADCAST, SEND_RECV: of the whole. ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER,
  /// SCATTER: of one block, of which there is one for each rank. BARRIER: ignored. Ignored with `counts`.
  uint64_t count = 0;
  uint32_t root = 0; ///< REDUCE, BROADCAST, GATHER, SCATTER; SEND_RECV: who sends
  uint32_t peer = 0; ///< SEND_RECV: who receives
  /// The v-variants: elements of each rank's block; ALL_TO_ALL: of the block from rank s to rank r at s * world_size +
  /// r.
  std::vector<uint64_t> counts = {};
  uint64_t chunk = 0; ///< Pipelined algorithms: elements of a piece; 0: as the algorithm likes
  /// By rank: the number of the host that it lies on, less than `world_size`. Ranks of a host reach each other faster
  /// than all others. Empty: all on one. Only hierarchical algorithms look at it.
  std::vector<uint32_t> hosts = {};

  friend bool operator==(const plan_request&, const plan_request&) = default;
};

/// "all_reduce", "all_to_all", ...: as people write them.
std::string_view name_of(proto::CollectiveKind kind);
/// Takes "all_gather_v", too: the kind is the same, with counts. Errors: invalid_argument, naming what there is.
caf::expected<proto::CollectiveKind> parse_collective_kind(std::string_view text);
/// All kinds, in the order of their numbers.
const std::vector<proto::CollectiveKind>& collective_kinds();

bool has_root(proto::CollectiveKind kind); ///< Including SEND_RECV's sender.
bool has_v_variant(proto::CollectiveKind kind);

/// Whether the request makes sense for the kind. Errors: invalid_argument, with a sentence: a world size of 0, a rank,
/// root or peer outside of it, counts where there are none or the wrong number, more elements than 2^63, hosts of
/// more or fewer ranks than there are.
caf::error check_request(proto::CollectiveKind kind, const plan_request& request);

/// Elements of `rank`'s input and output; 0 where it has none. The request's own rank does not matter.
uint64_t input_count(proto::CollectiveKind kind, const plan_request& request, uint32_t rank);
uint64_t output_count(proto::CollectiveKind kind, const plan_request& request, uint32_t rank);

/// In place a rank has one buffer, as large as the larger of its input and output. Where the two start in it, in
/// elements: at 0, but for a rank's own block, which has its place in the whole (NCCL's rule for ALL_GATHER and
/// REDUCE_SCATTER).
struct placement {
  uint64_t input = 0;
  uint64_t output = 0;
};
placement in_place(proto::CollectiveKind kind, const plan_request& request, uint32_t rank);

/// Whether an in-place output differs from the input that lies there.
bool replaces_input(proto::CollectiveKind kind);

/// Where what belongs into an output element comes from.
struct element_source {
  bool all_ranks = false; ///< It is the reduction of every rank's input[index].
  uint32_t rank = 0;      ///< Otherwise this rank's input[index].
  uint64_t index = 0;
};

/// What `output[index]` of `rank` must hold in the end; `index` < output_count.
element_source meaning_of(proto::CollectiveKind kind, const plan_request& request, uint32_t rank, uint64_t index);

} // namespace ringmaster
