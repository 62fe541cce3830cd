#include "runtime/proof.hpp"

#include "runtime/barrier_knowledge.hpp"
#include "runtime/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

/// Does to symbols what the steps say.
class symbol_walk : public walk_observer {
public:
  symbol_walk(proto::CollectiveKind kind, const plan_request& request, const std::vector<schedule>& ranks,
              const std::vector<buffer_counts>& counts)
    : kind_(kind), request_(request), ranks_(ranks), everybody_(sets_.range(0, request.world_size)) {
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      memory_.push_back({symbol_buffer{counts[rank].input, {0, 0, sets_.range(rank, rank + 1), false}},
                         symbol_buffer{counts[rank].output}, symbol_buffer{ranks[rank].scratch_count}});
  }

  std::string moved(step_ref from, step_ref to) override {
    const auto& what = at(to);
    auto fault = read(from.rank, at(from).source, incoming_);
    if (fault.empty() && what.what == action::recv_reduce)
      fault = read(to.rank, what.source, own_);
    if (fault.empty() && what.what == action::reduce)
      fault = read(to.rank, what.destination, own_);
    auto* result = &incoming_;
    if (fault.empty() && (what.what == action::recv_reduce || what.what == action::reduce)) {
      fault = combine(what.destination.count);
      result = &combined_;
    }
    if (fault.empty() && what.finish)
      fault = finish(*result);
    if (!fault.empty())
      return place_of(to.rank, to.index, what) + fault;
    at(to.rank, what.destination).write(what.destination.offset, what.destination.count, *result);
    return {};
  }

  /// After a walk without a fault: whether every output holds what it must.
  std::string check_outcome() {
    expected_outcome expected{kind_, request_, sets_};
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& output = memory_[rank].output;
      const auto& wanted = expected.of(rank);
      for (size_t i = 0; i < wanted.size(); ++i) {
        auto end = i + 1 < wanted.size() ? wanted[i + 1].start : output.count();
        incoming_.clear();
        output.read(wanted[i].start, end - wanted[i].start, incoming_);
        for (size_t k = 0; k < incoming_.size(); ++k)
          if (auto found = moved_by(incoming_[k], wanted[i].start); !found.same_symbols(wanted[i])) {
            auto last = k + 1 < incoming_.size() ? incoming_[k + 1].start + wanted[i].start : end;
            return fmt::format("rank {}, after its last round: output[{}, {}) holds {}; it must hold {}", rank,
                               found.start, last, describe(found, found.start), describe(wanted[i], found.start));
          }
      }
    }
    return {};
  }

private:
  struct rank_symbols {
    symbol_buffer input, output, scratch;
  };

  static symbol_run moved_by(symbol_run x, uint64_t offset) {
    x.start += offset;
    x.shift -= offset;
    return x;
  }

  const step& at(step_ref x) const { return ranks_[x.rank].steps[x.index]; }

  symbol_buffer& at(uint32_t rank, const block_range& range) {
    auto& all = memory_[rank];
    return range.where == buffer::input ? all.input : range.where == buffer::output ? all.output : all.scratch;
  }

  /// "the finished reduction of ranks 0 to 3 from element 2 on": of the element at `position`.
  std::string describe(const symbol_run& x, uint64_t position) const {
    if (x.of == rank_sets::empty)
      return "nothing";
    return fmt::format("the {} of {} from element {} on",
                       x.finished              ? "finished reduction"
                       : sets_.size(x.of) == 1 ? "input"
                                               : "unfinished reduction",
                       sets_.text(x.of), position + x.shift);
  }

  std::string read(uint32_t rank, const block_range& range, std::vector<symbol_run>& result) {
    result.clear();
    at(rank, range).read(range.offset, range.count, result);
    if (kind_ != proto::BARRIER)
      for (const auto& x : result)
        if (x.of == rank_sets::empty)
          return fmt::format("reads {} of rank {}, where nobody has written element {}", text_of(range), rank,
                             range.offset + x.start);
    return {};
  }

  /// `combined_` gets `incoming_` and `own_` reduced, of `count` elements.
  std::string combine(uint64_t count) {
    if (!reduces(kind_))
      return fmt::format("{} does not reduce", name_of(kind_));
    combined_.clear();
    for (size_t i = 0, k = 0; i < incoming_.size();) {
      const auto &a = incoming_[i], &b = own_[k];
      auto start = std::max(a.start, b.start);
      if (a.shift != b.shift || a.finished || b.finished)
        return fmt::format("combines {} with {}", describe(a, start), describe(b, start));
      auto united = sets_.unite(a.of, b.of);
      if (united.common != rank_sets::nobody)
        return fmt::format("combines {} with {}: rank {} would count twice", describe(a, start), describe(b, start),
                           united.common);
      symbol_run both{start, a.shift, united.both, false};
      if (combined_.empty() || !combined_.back().same_symbols(both))
        combined_.push_back(both);
      auto a_end = i + 1 < incoming_.size() ? incoming_[i + 1].start : count;
      auto b_end = k + 1 < own_.size() ? own_[k + 1].start : count;
      i += a_end <= b_end ? 1 : 0;
      k += b_end <= a_end ? 1 : 0;
    }
    return {};
  }

  std::string finish(std::vector<symbol_run>& runs) {
    if (!reduces(kind_))
      return fmt::format("finishes, and {} does not reduce", name_of(kind_));
    for (auto& x : runs) {
      if (x.finished || x.of != everybody_)
        return fmt::format("finishes {}", describe(x, x.start));
      x.finished = true;
    }
    return {};
  }

  proto::CollectiveKind kind_;
  const plan_request& request_;
  const std::vector<schedule>& ranks_;
  rank_sets sets_;
  rank_sets::id everybody_;
  std::vector<rank_symbols> memory_;
  std::vector<symbol_run> incoming_, own_, combined_;
};

} // namespace

std::vector<buffer_counts> buffer_counts_of(proto::CollectiveKind kind, const plan_request& request) {
  std::vector<buffer_counts> result;
  for (uint32_t rank = 0; rank < request.world_size; ++rank)
    result.push_back({input_count(kind, request, rank), output_count(kind, request, rank)});
  return result;
}

proof prove(proto::CollectiveKind kind, const plan_request& request, const std::vector<schedule>& ranks,
            uint64_t seed) {
  if (ranks.size() != request.world_size) {
    proof result;
    result.fault = fmt::format("there are {} schedules for {} ranks", ranks.size(), request.world_size);
    return result;
  }
  auto counts = buffer_counts_of(kind, request);
  if (kind == proto::BARRIER) {
    barrier_knowledge knowledge{ranks};
    auto result = walk_schedules(ranks, counts, seed, knowledge);
    if (result.fault.empty())
      result.fault = knowledge.check_end();
    return result;
  }
  symbol_walk symbols{kind, request, ranks, counts};
  auto result = walk_schedules(ranks, counts, seed, symbols);
  if (result.fault.empty())
    result.fault = symbols.check_outcome();
  return result;
}

} // namespace ringmaster
