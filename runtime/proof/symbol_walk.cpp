#include "runtime/proof/symbol_walk.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

symbol_run moved_by(symbol_run x, uint64_t offset) {
  x.start += offset;
  x.shift -= offset;
  return x;
}

} // namespace

symbol_walk::symbol_walk(proto::CollectiveKind kind, const plan_request& request, const std::vector<schedule>& ranks,
                         const std::vector<buffer_counts>& counts, addition_order order)
  : kind_(kind), request_(request), ranks_(ranks), order_(order), everybody_(sets_.range(0, request.world_size)) {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    memory_.push_back({symbol_buffer{counts[rank].input, {0, 0, sets_.range(rank, rank + 1), false}},
                       symbol_buffer{counts[rank].output}, symbol_buffer{ranks[rank].scratch_count}});
}

caf::error symbol_walk::moved(step_ref from, step_ref to) {
  const auto& what = at(to);
  if (const auto fault = compute(from, to))
    return with_context(place_of(to.rank, to.index, what), fault);
  at(to.rank, what.destination).write(what.destination.offset, what.destination.count, *result_);
  return {};
}

caf::error symbol_walk::compute(step_ref from, step_ref to) {
  const auto& what = at(to);
  result_ = &incoming_;
  if (what.what == action::fold) {
    RETURN_ERROR(fold(to.rank, what));
  } else {
    RETURN_ERROR(read(from.rank, at(from).source, incoming_));
    if (what.what == action::recv_reduce || what.what == action::reduce) {
      RETURN_ERROR(read(to.rank, what.what == action::reduce ? what.destination : what.source, own_));
      if (order_ == addition_order::ranks)
        return invalid("adds up two blocks; in rank order only a fold adds, and all inputs at once");
      RETURN_ERROR(combine(what.destination.count));
      result_ = &combined_;
    }
  }
  return what.finish ? finish(*result_) : caf::error{};
}

caf::error symbol_walk::check_outcome() {
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
          return invalid(fmt::format("rank {}, after its last round: output[{}, {}) holds {}; it must hold {}", rank,
                                     found.start, last, describe(found, found.start),
                                     describe(wanted[i], found.start)));
        }
    }
  }
  return {};
}

symbol_buffer& symbol_walk::at(uint32_t rank, const block_range& range) {
  auto& all = memory_[rank];
  return range.where == buffer::input ? all.input : range.where == buffer::output ? all.output : all.scratch;
}

std::string symbol_walk::describe(const symbol_run& x, uint64_t position) const {
  if (x.of == rank_sets::empty)
    return "nothing";
  return fmt::format("the {} of {} from element {} on",
                     x.finished              ? "finished reduction"
                     : sets_.size(x.of) == 1 ? "input"
                                             : "unfinished reduction",
                     sets_.text(x.of), position + x.shift);
}

caf::error symbol_walk::read(uint32_t rank, const block_range& range, std::vector<symbol_run>& result) {
  result.clear();
  at(rank, range).read(range.offset, range.count, result);
  if (kind_ != proto::BARRIER)
    for (const auto& x : result)
      if (x.of == rank_sets::empty)
        return invalid(fmt::format("reads {} of rank {}, where no rank has written element {}", text_of(range), rank,
                                   range.offset + x.start));
  return {};
}

caf::error symbol_walk::combine(uint64_t count) {
  if (!reduces(kind_))
    return invalid(fmt::format("{} does not reduce", name_of(kind_)));
  combined_.clear();
  for (size_t i = 0, k = 0; i < incoming_.size();) {
    const auto &a = incoming_[i], &b = own_[k];
    auto start = std::max(a.start, b.start);
    if (a.shift != b.shift || a.finished || b.finished)
      return invalid(fmt::format("combines {} with {}", describe(a, start), describe(b, start)));
    auto united = sets_.unite(a.of, b.of);
    if (united.common != rank_sets::none)
      return invalid(fmt::format("combines {} with {}: rank {} would count twice", describe(a, start),
                                 describe(b, start), united.common));
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

caf::error symbol_walk::fold(uint32_t rank, const step& what) {
  auto lane = what.source;
  lane.count = what.destination.count;
  const auto lanes = what.source.count / lane.count;
  if (order_ == addition_order::ranks && lanes != request_.world_size)
    return invalid(fmt::format("folds {} lanes, and there are {} ranks", lanes, request_.world_size));
  for (uint32_t i = 0; i < lanes; ++i, lane.offset += lane.count) {
    RETURN_ERROR(read(rank, lane, i == 0 ? incoming_ : own_));
    if (order_ == addition_order::ranks)
      RETURN_ERROR(check_lane(i));
    if (i == 0)
      continue;
    RETURN_ERROR(combine(lane.count));
    std::swap(incoming_, combined_);
  }
  return {};
}

caf::error symbol_walk::check_lane(uint32_t lane) const {
  for (const auto& x : lane == 0 ? incoming_ : own_)
    if (sets_.size(x.of) != 1 || !sets_.contains(x.of, lane))
      return invalid(fmt::format("lane {} holds {}; in rank order it must hold the input of rank {}", lane,
                                 describe(x, x.start), lane));
  return {};
}

caf::error symbol_walk::finish(std::vector<symbol_run>& runs) {
  if (!reduces(kind_))
    return invalid(fmt::format("finishes, and {} does not reduce", name_of(kind_)));
  for (auto& x : runs) {
    if (x.finished || x.of != everybody_)
      return invalid(fmt::format("finishes {}", describe(x, x.start)));
    x.finished = true;
  }
  return {};
}

} // namespace ringmaster
