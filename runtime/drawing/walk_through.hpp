#pragma once

#include "runtime/schedule/collective.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

inline constexpr uint32_t drawn_ranks_max = 16;
inline constexpr uint64_t drawn_elements_max = 4096; ///< Of a buffer.
inline constexpr uint32_t drawn_rounds_max = 1 << 14;

/// The content of some elements: a block of the input, of one rank or summed over several.
struct content {
  static constexpr uint32_t nothing = UINT32_MAX;

  uint32_t block = nothing;
  uint32_t ranks = 0; ///< A bit for each rank whose input it contains.

  friend auto operator<=>(const content&, const content&) = default;
};

/// A message, or local work, whose source and destination are the same rank.
struct drawn_activity {
  action what = action::recv; ///< The receiver's.
  uint32_t source = 0, destination = 0;
  uint32_t order = 0;              ///< Within its round: the number of steps before it in a chain of `then`.
  std::vector<content> contents{}; ///< Without duplicates, in the order of the elements.
};

/// The data of a rank in cells. The elements of a cell have the same content throughout the schedule.
struct rank_holdings {
  std::vector<content> output{}; ///< BARRIER: the ranks known to have arrived.
  std::vector<content> scratch{};
};

struct drawn_round {
  std::vector<drawn_activity> activities{};
  std::vector<rank_holdings> after{}; ///< By rank.
};

/// The execution of a schedule, for a picture: the messages of each round, and the data of each rank after it.
struct walk_through {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm{};
  uint32_t world_size = 0;
  std::vector<uint32_t> hosts{};              ///< By rank, as in `plan_request`.
  uint32_t blocks = 0;                        ///< The number of blocks into which the schedule divides the inputs.
  bool one_source = false;                    ///< All data comes from one rank, so a block identifies it.
  std::vector<std::vector<content>> inputs{}; ///< By rank, a cell for each block.
  std::vector<drawn_round> rounds{};
  caf::error fault{}; ///< The first known fault of the schedules.

  /// Blocks identify data, and ranks are summed. Otherwise the source rank identifies data. A barrier's tokens are sums
  /// too: the ranks that have arrived.
  bool shows_sums() const { return reduces(kind) || kind == proto::BARRIER; }
  bool coloured_by_block() const { return shows_sums() || one_source; }
  bool is_whole(const content& x) const {
    return x.ranks == (shows_sums() ? (1u << world_size) - 1 : x.ranks) && x.block != content::nothing;
  }
};

/// Executes the schedules of all ranks, proved or not. Errors: invalid_argument for more than 16 ranks or 4096
/// elements, for ranges out of bounds, and for sends and receives that do not match. After a deadlock `fault` describes
/// it, and the result has all activities before it.
caf::expected<walk_through> walk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request,
                                 std::span<const schedule> ranks);

/// The same for a registered algorithm. Errors: also those of `plan`.
caf::expected<walk_through> walk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request);

/// ", on hosts 0 1 2 | 3 4": the ranks of each host; empty for one host.
std::string hosts_text(const walk_through& story);

/// "3", "4-7", "0, 2", "6 blocks": the content's blocks or source ranks. "x3", "x0-x3", "sum": the inputs in a sum of
/// one block. "0-3", "all": the ranks that have arrived at a barrier. "0>1", "0>1,3": source and destination, if each
/// rank has a block for each rank.
std::string label_of(const walk_through& story, const std::vector<content>& contents);

} // namespace ringmaster
