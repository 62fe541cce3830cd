#pragma once

#include "runtime/collective.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The three buffers of a rank. Input and output never overlap here: an in-place operation runs into a shadow
/// of its output, which takes the output's place when the outcome is certain.
enum class buffer : uint8_t { input, output, scratch };

/// `count` elements from element `offset` of a buffer.
struct block_range {
  buffer where = buffer::input;
  uint64_t offset = 0;
  uint64_t count = 0;

  friend bool operator==(const block_range&, const block_range&) = default;
};

enum class action : uint8_t {
  send,        ///< `source` goes to `peer`.
  recv,        ///< `destination` comes from `peer`.
  recv_reduce, ///< destination[i] = op(incoming[i], source[i]), the incoming block being `peer`'s.
  copy,        ///< destination[i] = source[i], on this rank.
  reduce,      ///< destination[i] = op(destination[i], source[i]), on this rank.
  fold         ///< destination[i] = source[i] op source[n + i] op source[2n + i] ..., n being destination.count, from
               ///< left to right, on this rank. Small floats stay float32 up to the end of it, and are rounded once.
};

/// One thing a rank does. The k-th send from a to b meets the k-th recv or recv_reduce of b from a.
struct step {
  action what = action::send;
  uint32_t round = 0;
  uint32_t peer = 0; ///< Another rank; for copy, reduce and fold the rank itself.
  block_range source{};
  block_range destination{};
  bool finish = false; ///< The reduction of this block ends here: AVG divides by the world size.
  bool then = false;   ///< It starts when the step before it in the list has ended, which is of the same round.

  friend bool operator==(const step&, const step&) = default;
};

/// What one rank does, as rounds. The steps of a round start together (but those marked `then`) and may end in any
/// order; the next round starts when all have ended. A send ends when the peer has read the block. Steps of one round
/// may therefore read the same range, but none may write what another one reads or writes, unless a chain of `then`
/// lies between the two. A step that reduces works element by element, so its own source and destination may be the
/// same range exactly, and may not overlap otherwise. No step writes the input, and none is empty. A rank may have
/// nothing to do in a round.
struct schedule {
  uint32_t rounds = 0;        ///< The same on every rank.
  uint64_t scratch_count = 0; ///< Elements of scratch the rank needs.
  std::vector<step> steps;    ///< Sorted by round.

  friend bool operator==(const schedule&, const schedule&) = default;
};

/// What an algorithm takes, over all ranks. On a uniform network, where each rank has one port out and one in, a message
/// of b bytes keeps both busy for b / bandwidth and is there after another latency, and nobody computes, it takes
/// latencies x latency + serial_elements x element size / bandwidth: exactly where all blocks have the same size, else
/// no more.
struct algorithm_cost {
  uint64_t rounds = 0;
  uint64_t elements = 0; ///< Sent by the rank that sends most.
  uint64_t messages = 0; ///< Sent or received by the rank that has most of them in one direction.
  uint64_t latencies = 0;
  uint64_t serial_elements = 0;

  friend bool operator==(const algorithm_cost&, const algorithm_cost&) = default;
};

/// A collective algorithm: a pure function from the request to the rank's schedule. It is asked for two ranks or more
/// and at least one element somewhere, and for a request that `check_request` has passed.
struct algorithm {
  std::string_view name;
  proto::CollectiveKind kind;
  std::string_view formula; ///< Rounds and elements at the busiest rank, for people.
  schedule (*plan)(const plan_request&);
  algorithm_cost (*cost)(const plan_request&); ///< The rank does not matter.
  /// Why the algorithm cannot honour the request, as a sentence; nullptr: it takes all. The rank does not matter.
  caf::error (*check)(const plan_request&) = nullptr;
};

/// All algorithms, in the order in which they are listed to people.
const std::vector<algorithm>& algorithms();

/// Adds an algorithm to `algorithms()`: from then on it is found, planned and proved as those that are built in. Its
/// name and formula must stay where they are. Called when a program starts, before anything else looks at the
/// algorithms: pointers to them do not outlive it. Errors: invalid_argument for a name that is empty or that the kind
/// has already, and for a missing function.
caf::error register_algorithm(const algorithm& added);

/// Errors: invalid_argument; the text names the algorithms that the kind has.
caf::expected<const algorithm*> find_algorithm(proto::CollectiveKind kind, std::string_view name);

/// The same, if it can do what the request asks. Errors also for what `check_request` or the algorithm refuses.
caf::expected<const algorithm*> find_algorithm(proto::CollectiveKind kind, std::string_view name,
                                               const plan_request& request);

/// The schedule of `request.rank`. One rank alone copies its input; a collective without elements does nothing. Errors:
/// invalid_argument for an unknown algorithm and for what `check_request` or the algorithm refuses.
caf::expected<schedule> plan(proto::CollectiveKind kind, std::string_view algorithm_name,
                             const plan_request& request);

/// The schedules of all ranks; the request's own does not matter. Errors as of `plan`.
caf::expected<std::vector<schedule>> plan_all(proto::CollectiveKind kind, std::string_view algorithm_name,
                                              plan_request request);

/// Errors as of `plan`.
caf::expected<algorithm_cost> cost_of(proto::CollectiveKind kind, std::string_view algorithm_name,
                                      const plan_request& request);

/// Block `index` of `count` elements cut into `blocks` nearly equal parts; the first `count % blocks` of them are
/// one element larger.
block_range block_of(buffer where, uint64_t count, uint32_t blocks, uint32_t index);

} // namespace ringmaster
