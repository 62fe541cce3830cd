#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace ringmaster {

/// One collective, as one rank sees it.
struct plan_request {
  uint32_t world_size = 1; ///< Ranks.
  uint32_t rank = 0;       ///< The rank that plans.
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

/// The three buffers of a rank. Input and output never overlap here: an in-place operation runs into a shadow
/// of its output, which takes the output's place when the outcome is certain.
enum class buffer : uint8_t { input, output, scratch };

/// `count` elements from element `offset` of a buffer.
struct block_range {
  buffer where = buffer::input; ///< The buffer.
  uint64_t offset = 0;          ///< First element.
  uint64_t count = 0;           ///< Elements.

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
  action what = action::send; ///< The kind of step.
  uint32_t round = 0;         ///< Counted from 0.
  uint32_t peer = 0;          ///< Another rank; for copy, reduce and fold the rank itself.
  block_range source{};       ///< What it reads.
  block_range destination{};  ///< What it writes.
  bool finish = false;        ///< The reduction of this block ends here: AVG divides by the world size.
  bool then = false;          ///< It starts when the step before it in the list has ended, which is of the same round.

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

/// Block `index` of `count` elements cut into `blocks` nearly equal parts; the first `count % blocks` of them are
/// one element larger.
block_range block_of(buffer where, uint64_t count, uint32_t blocks, uint32_t index);

/// How a run of elements is cut into blocks that follow each other, of any sizes, zero included.
class blocks {
public:
  /// `count` elements in `parts` nearly equal blocks; the first count % parts of them are one element larger.
  static blocks even(uint64_t count, uint32_t parts);
  /// `parts` blocks of `count` elements each.
  static blocks uniform(uint64_t count, uint32_t parts);
  /// One block for each count.
  static blocks of(const std::vector<uint64_t>& counts);
  /// One block for each rank, as the kind cuts its blocked side; ALL_TO_ALL: `rank`'s input.
  template <class Kind>
  requires std::is_enum_v<Kind>
  static blocks of(Kind kind, const plan_request& request, uint32_t rank) {
    return of_kind(static_cast<int>(kind), request, rank);
  }
  /// ALL_TO_ALL: `rank`'s output.
  static blocks received(const plan_request& request, uint32_t rank);

  /// Blocks.
  uint32_t size() const noexcept { return static_cast<uint32_t>(starts_.size()) - 1; }
  /// Elements of all blocks.
  uint64_t total() const noexcept { return starts_.back(); }
  /// Elements of a block.
  uint64_t count(uint32_t index) const { return starts_[index + 1] - starts_[index]; }
  /// First element of a block.
  uint64_t start(uint32_t index) const { return starts_[index]; }

  /// A block as a range of a buffer.
  block_range at(buffer where, uint32_t index) const { return range(where, index, index + 1); }
  /// Blocks [first, last) as one range.
  block_range range(buffer where, uint32_t first, uint32_t last) const {
    return {where, starts_[first], starts_[last] - starts_[first]};
  }

private:
  static blocks of_kind(int kind, const plan_request& request, uint32_t rank);
  explicit blocks(std::vector<uint64_t> starts) : starts_(std::move(starts)) {}

  std::vector<uint64_t> starts_; ///< And the end of the last.
};

/// What algorithms write their steps with. Blocks without elements are left out; their rounds stay.
class schedule_builder {
public:
  /// Starts a schedule for the request, which must outlive the builder.
  explicit schedule_builder(const plan_request& asked) : request(asked) {}

  /// Sends a range to a rank.
  void send(uint32_t round, uint32_t peer, block_range source) {
    add({.what = action::send, .round = round, .peer = peer, .source = source}, source.count);
  }

  /// Receives a range from a rank.
  void recv(uint32_t round, uint32_t peer, block_range destination) {
    add({.what = action::recv, .round = round, .peer = peer, .destination = destination}, destination.count);
  }

  /// `source`: this rank's own part of the reduction.
  void recv_reduce(uint32_t round, uint32_t peer, block_range source, block_range destination, bool finish = false) {
    add({.what = action::recv_reduce,
         .round = round,
         .peer = peer,
         .source = source,
         .destination = destination,
         .finish = finish},
        destination.count);
  }

  /// Copies a range on this rank.
  void copy(uint32_t round, block_range source, block_range destination, bool finish = false) {
    add({.what = action::copy,
         .round = round,
         .peer = request.rank,
         .source = source,
         .destination = destination,
         .finish = finish},
        destination.count);
  }

  /// Combines two ranges on this rank; the result is in `destination`.
  void reduce(uint32_t round, block_range source, block_range destination, bool finish = false) {
    add({.what = action::reduce,
         .round = round,
         .peer = request.rank,
         .source = source,
         .destination = destination,
         .finish = finish},
        destination.count);
  }

  /// The step added last starts when the one before it has ended. Only after a step that was not empty.
  void then() { result_.steps.back().then = true; }

  /// `elements` more of scratch; returns where they start.
  uint64_t scratch(uint64_t elements) { return std::exchange(result_.scratch_count, result_.scratch_count + elements); }

  /// The schedule, with its steps sorted by round.
  schedule take(uint32_t rounds) {
    result_.rounds = rounds;
    std::stable_sort(result_.steps.begin(), result_.steps.end(), [](auto& a, auto& b) { return a.round < b.round; });
    return std::move(result_);
  }

  const plan_request& request; ///< As given.

private:
  void add(step x, uint64_t elements) {
    if (elements != 0)
      result_.steps.push_back(x);
  }

  schedule result_;
};

/// What an algorithm takes, over all ranks. On a uniform network, where each rank has one port out and one in, a
/// message of b bytes keeps both busy for b / bandwidth and arrives after another latency, and no rank computes, it
/// takes latencies x latency + serial_elements x element size / bandwidth: exactly where all blocks have the same size,
/// else no more.
struct algorithm_cost {
  uint64_t rounds = 0;          ///< Rounds of the schedule.
  uint64_t elements = 0;        ///< Sent by the rank that sends most.
  uint64_t messages = 0;        ///< Sent or received by the rank that has most of them in one direction.
  uint64_t latencies = 0;       ///< Latencies on the critical path.
  uint64_t serial_elements = 0; ///< Elements sent one after the other on the critical path.

  friend bool operator==(const algorithm_cost&, const algorithm_cost&) = default;
};

} // namespace ringmaster
