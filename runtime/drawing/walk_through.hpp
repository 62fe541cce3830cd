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

/// What some elements hold: elements of a block of the input, as the sum of some ranks' inputs or as one rank's.
struct content {
  static constexpr uint32_t nothing = UINT32_MAX;

  uint32_t block = nothing;
  uint32_t ranks = 0; ///< A bit for each rank whose input is in it.

  friend auto operator<=>(const content&, const content&) = default;
};

/// A message, or what a rank does by itself: then source and destination are the same rank.
struct drawn_activity {
  action what = action::recv; ///< The receiver's.
  uint32_t source = 0, destination = 0;
  uint32_t order = 0;              ///< Within its round: how many steps it stands behind in a chain of `then`.
  std::vector<content> contents{}; ///< Each one once, in the order of the elements.
};

/// What a rank has, in as few cells as tell it all: a cell's elements hold the same throughout the schedule.
struct rank_holdings {
  std::vector<content> output{}; ///< BARRIER: of whom the rank knows that they have come.
  std::vector<content> scratch{};
};

struct drawn_round {
  std::vector<drawn_activity> activities{};
  std::vector<rank_holdings> after{}; ///< By rank.
};

/// What a schedule does, for a picture: who sends what to whom in each round, and what each rank has then.
struct walk_through {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  std::string algorithm{};
  uint32_t world_size = 0;
  std::vector<uint32_t> hosts{};              ///< By rank, as `plan_request` has them.
  uint32_t blocks = 0;                        ///< Into which the schedule cuts the inputs.
  bool one_source = false;                    ///< All data is one rank's, so a block says what it is.
  std::vector<std::vector<content>> inputs{}; ///< By rank, a cell a block.
  std::vector<drawn_round> rounds{};
  caf::error fault{}; ///< What is wrong with the schedules, as far as that is known.

  /// Blocks tell data apart, and ranks are what is added up; otherwise it is the rank that the data comes from.
  /// A barrier's tokens carry what adds up as well: who is known to have come.
  bool shows_sums() const { return reduces(kind) || kind == proto::BARRIER; }
  bool coloured_by_block() const { return shows_sums() || one_source; }
  bool is_whole(const content& x) const {
    return x.ranks == (shows_sums() ? (1u << world_size) - 1 : x.ranks) && x.block != content::nothing;
  }
};

/// Walks through the schedules of all ranks, which need not be proved. Errors: invalid_argument for more than 16 ranks
/// or 4096 elements, for ranges out of bounds, and sends and receives that do not fit. Where ranks wait for ever,
/// `fault` says so, and the story has what they did before.
caf::expected<walk_through> walk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request,
                                 std::span<const schedule> ranks);

/// The same for a registered algorithm. Errors also as of `plan`.
caf::expected<walk_through> walk(proto::CollectiveKind kind, std::string_view algorithm, const plan_request& request);

/// ", on hosts 0 1 2 | 3 4": the ranks of each; empty where all are on one.
std::string hosts_text(const walk_through& story);

/// "3", "4-7", "0, 2", "6 blocks": what the content is of, by block or by the rank it comes from; for sums of one block
/// only, whose inputs: "x3", "x0-x3", "sum"; of a barrier, who has come: "0-3", "all";
/// where each rank has a block for each, "0>1", "0>1,3".
std::string label_of(const walk_through& story, const std::vector<content>& contents);

} // namespace ringmaster
