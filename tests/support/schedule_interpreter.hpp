#pragma once

#include "runtime/schedule.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ringmaster::test {

/// What came of walking the schedules of all ranks together.
struct interpretation {
  std::string fault;             ///< Empty: none. Names rank, round and range.
  std::vector<uint64_t> steps;   ///< Done, by rank.
  std::vector<uint64_t> sent;    ///< Elements, by rank.
  std::vector<uint64_t> received;
};

/// Does to memory what `what` of `rank` says; the incoming block, if any, is `source` of `source_rank`.
using step_effect
  = std::function<void(uint32_t rank, const step& what, uint32_t source_rank, const block_range& source)>;

/// Walks the schedules of all ranks as the rules in runtime/schedule.hpp have it: a send ends only when the peer has
/// read it, and what can be done next is done in an order drawn from `seed`. Stops at the first fault: a deadlock, a
/// range that is written while it may still be read or written otherwise, a range out of bounds, blocks of
/// different sizes, a step without elements, a write to the input, a schedule that is not sorted.
/// Input and output hold `count` elements on every rank.
interpretation interpret(const std::vector<schedule>& ranks, uint64_t count, uint64_t seed,
                         const step_effect& effect);

/// The buffers of one rank.
template <class Value>
struct rank_memory {
  std::vector<Value> input, output, scratch;

  Value* at(const block_range& range) {
    auto& all = range.where == buffer::input ? input : range.where == buffer::output ? output : scratch;
    return all.data() + range.offset;
  }
};

/// Runs the schedules on values. `op(incoming, own)` combines two of them, `finish(value)` ends a reduction.
template <class Value, class Op, class Finish>
interpretation interpret_on(std::vector<rank_memory<Value>>& memory, const std::vector<schedule>& ranks,
                            uint64_t count, uint64_t seed, Op op, Finish finish) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    memory[rank].output.resize(count);
    memory[rank].scratch.resize(ranks[rank].scratch_count);
  }
  return interpret(ranks, count, seed, [&](uint32_t rank, const step& what, uint32_t source_rank,
                                           const block_range& source) {
    auto* in = memory[source_rank].at(source);
    auto* own = memory[rank].at(what.source);
    auto* out = memory[rank].at(what.destination);
    for (uint64_t i = 0; i < what.destination.count; ++i) {
      if (what.what == action::recv_reduce)
        out[i] = op(in[i], own[i]);
      else if (what.what == action::reduce)
        out[i] = op(out[i], in[i]);
      else
        out[i] = in[i];
      if (what.finish)
        out[i] = finish(out[i]);
    }
  });
}

/// How often each rank's element is in a sum: [rank] -> times. What a schedule is proved on instead of numbers.
using contributions = std::vector<uint32_t>;

/// Walks the schedules on symbols. Where they keep the rules, also faults an output element that does not hold every
/// rank's element of its own index exactly once, or whose reduction was not finished exactly once.
interpretation prove_all_reduce(const std::vector<schedule>& ranks, uint64_t count, uint64_t seed);

} // namespace ringmaster::test
