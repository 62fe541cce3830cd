#pragma once

#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/proof/proof.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ringmaster::test {

/// The schedules of all ranks, of a request that the algorithm takes.
inline std::vector<schedule> planned(proto::CollectiveKind kind, std::string_view name, const plan_request& request) {
  auto ranks = plan_all(kind, name, request);
  REQUIRE_MESSAGE(ranks.engaged(), render(ranks.error()));
  return std::move(*ranks);
}

/// The buffers of one rank.
template <class Value>
struct rank_memory {
  std::vector<Value> input, output, scratch;

  Value* at(const block_range& range) {
    auto& all = range.where == buffer::input ? input : range.where == buffer::output ? output : scratch;
    return all.data() + range.offset;
  }
};

/// Does to values what the steps say. `op(incoming, own)` combines two of them, `finish(value)` ends a reduction.
template <class Value, class Op, class Finish>
class value_walk : public walk_observer {
public:
  value_walk(std::vector<rank_memory<Value>>& memory, const std::vector<schedule>& ranks, Op op, Finish finish)
    : memory_(memory), ranks_(ranks), op_(op), finish_(finish) {}

  caf::error moved(step_ref from, step_ref to) override {
    const auto& what = ranks_[to.rank].steps[to.index];
    auto* in = memory_[from.rank].at(ranks_[from.rank].steps[from.index].source);
    auto* own = memory_[to.rank].at(what.source);
    auto* out = memory_[to.rank].at(what.destination);
    const auto count = what.destination.count;
    for (uint64_t i = 0; i < count; ++i) {
      if (what.what == action::recv_reduce)
        out[i] = op_(in[i], own[i]);
      else if (what.what == action::fold)
        out[i] = fold(in + i, count, what.source.count / count);
      else if (what.what == action::reduce)
        out[i] = op_(out[i], in[i]);
      else
        out[i] = in[i];
      if (what.finish)
        out[i] = finish_(out[i]);
    }
    return {};
  }

private:
  Value fold(const Value* lane, uint64_t stride, uint64_t lanes) {
    auto result = *lane;
    while (--lanes != 0)
      result = op_(result, *(lane += stride));
    return result;
  }

  std::vector<rank_memory<Value>>& memory_;
  const std::vector<schedule>& ranks_;
  Op op_;
  Finish finish_;
};

/// Runs the schedules of any kind on values: the inputs are there, outputs and scratch are made.
template <class Value, class Op, class Finish>
walk_result interpret_on(std::vector<rank_memory<Value>>& memory, const std::vector<schedule>& ranks,
                         const std::vector<buffer_counts>& counts, uint64_t seed, Op op, Finish finish) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    memory[rank].output.resize(counts[rank].output);
    memory[rank].scratch.resize(ranks[rank].scratch_count);
  }
  value_walk<Value, Op, Finish> values{memory, ranks, op, finish};
  return walk_schedules(ranks, counts, seed, values);
}

/// Where input and output hold `count` elements on every rank.
template <class Value, class Op, class Finish>
walk_result interpret_on(std::vector<rank_memory<Value>>& memory, const std::vector<schedule>& ranks, uint64_t count,
                         uint64_t seed, Op op, Finish finish) {
  return interpret_on(memory, ranks, std::vector<buffer_counts>(ranks.size(), {count, count}), seed, op, finish);
}

} // namespace ringmaster::test
