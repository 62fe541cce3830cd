#include "runtime/schedule/schedule_check.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

bool overlap(const block_range& a, const block_range& b) {
  return a.where == b.where && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

caf::error check_range(const block_range& range, uint64_t limit) {
  if (range.count == 0)
    return invalid("a step without elements");
  if (range.offset > limit || range.count > limit - range.offset)
    return invalid(fmt::format("{} is out of bounds, there are {} elements", text_of(range), limit));
  return {};
}

/// One step, apart from the others.
caf::error check_step(uint32_t rank, uint32_t world_size, const schedule& all, const buffer_counts& counts,
                      const step& x) {
  auto limit_of = [&](const block_range& range) {
    return range.where == buffer::scratch ? all.scratch_count
           : range.where == buffer::input ? counts.input
                                          : counts.output;
  };
  if (is_local(x) ? x.peer != rank : x.peer == rank || x.peer >= world_size)
    return invalid(fmt::format("rank {} is no peer for it", x.peer));
  if (reads_own(x))
    RETURN_ERROR(check_range(x.source, limit_of(x.source)));
  if (!writes(x))
    return x.finish ? invalid("a send finishes nothing") : caf::error{};
  RETURN_ERROR(check_range(x.destination, limit_of(x.destination)));
  if (x.destination.where == buffer::input)
    return invalid(fmt::format("writes {}, and no rank writes an input", text_of(x.destination)));
  if (!reads_own(x))
    return {};
  if (x.what == action::fold ? x.source.count % x.destination.count != 0 : x.source.count != x.destination.count)
    return invalid(fmt::format("{} does not fit {}", text_of(x.source), text_of(x.destination)));
  if (x.source != x.destination && overlap(x.source, x.destination))
    return invalid(fmt::format("{} overlaps its own source {}", text_of(x.destination), text_of(x.source)));
  return {};
}

/// A range that a step of a round reads or writes.
struct access {
  const block_range* range;
  uint32_t index; ///< Of the step.
  uint32_t chain; ///< Steps of one chain of `then` run one after the other.
  bool writes;

  uint64_t end() const { return range->offset + range->count; }
};

/// Of the accesses seen so far, the two of different chains that reach furthest.
struct furthest {
  const access* best = nullptr;
  const access* second = nullptr;

  void add(const access& x) {
    if (best == nullptr || x.end() > best->end()) {
      if (best != nullptr && best->chain != x.chain)
        second = best;
      best = &x;
    } else if (x.chain != best->chain && (second == nullptr || x.end() > second->end())) {
      second = &x;
    }
  }

  /// One of another chain that reaches into `x`.
  const access* into(const access& x) const {
    const auto* found = best != nullptr && best->chain == x.chain ? second : best;
    return found != nullptr && found->end() > x.range->offset ? found : nullptr;
  }
};

/// All steps of a round may be under way at once, but for chains, so their ranges must not get in each other's way.
class hazard_check {
public:
  hazard_check(uint32_t rank, const std::vector<step>& steps) : rank_(rank), steps_(steps) {}

  /// The round of steps [first, last).
  caf::error check(uint32_t first, uint32_t last) {
    if (last - first == 1)
      return {};
    collect(first, last);
    std::sort(accesses_.begin(), accesses_.end(), [](const access& a, const access& b) {
      return a.range->where != b.range->where ? a.range->where < b.range->where : a.range->offset < b.range->offset;
    });
    furthest written, any;
    const access* previous = nullptr;
    for (const auto& x : accesses_) {
      if (previous == nullptr || previous->range->where != x.range->where)
        written = any = {};
      if (const auto* other = (x.writes ? any : written).into(x))
        return describe(x, *other);
      any.add(x);
      if (x.writes)
        written.add(x);
      previous = &x;
    }
    return {};
  }

private:
  void collect(uint32_t first, uint32_t last) {
    accesses_.clear();
    auto chain = first;
    for (auto index = first; index < last; ++index) {
      const auto& x = steps_[index];
      if (!x.then)
        chain = index;
      if (reads_own(x))
        accesses_.push_back({&x.source, index, chain, false});
      if (writes(x))
        accesses_.push_back({&x.destination, index, chain, true});
    }
  }

  caf::error describe(const access& a, const access& b) const {
    const auto& writer = a.writes ? a : b;
    const auto& other = a.writes ? b : a;
    const auto& x = steps_[writer.index];
    const auto& y = steps_[other.index];
    if (other.writes)
      return invalid(fmt::format("{}: {} is written twice in this round, by step {} ({}), too",
                                 place_of(rank_, writer.index, x), text_of(x.destination), other.index, text_of(y)));
    return invalid(fmt::format("{}: {} is written while it may still be read by step {} ({})",
                               place_of(rank_, writer.index, x), text_of(x.destination), other.index, text_of(y)));
  }

  uint32_t rank_;
  const std::vector<step>& steps_;
  std::vector<access> accesses_;
};

} // namespace

std::string text_of(const block_range& x) {
  static constexpr const char* names[] = {"input", "output", "scratch"};
  return fmt::format("{}[{}, {})", names[static_cast<int>(x.where)], x.offset, x.offset + x.count);
}

std::string text_of(const step& x) {
  switch (x.what) {
    case action::send: return fmt::format("send of {} to rank {}", text_of(x.source), x.peer);
    case action::recv: return fmt::format("recv of {} from rank {}", text_of(x.destination), x.peer);
    case action::recv_reduce: return fmt::format("recv_reduce of {} from rank {}", text_of(x.destination), x.peer);
    case action::copy: return fmt::format("copy of {} to {}", text_of(x.source), text_of(x.destination));
    case action::reduce: return fmt::format("reduce of {} into {}", text_of(x.source), text_of(x.destination));
    case action::fold: return fmt::format("fold of {} into {}", text_of(x.source), text_of(x.destination));
  }
  return "unknown step";
}

std::string place_of(uint32_t rank, size_t index, const step& x) {
  return fmt::format("rank {}, round {}, step {} ({})", rank, x.round, index, text_of(x));
}

caf::error check_schedule(uint32_t rank, uint32_t world_size, const schedule& what, const buffer_counts& counts) {
  const auto& steps = what.steps;
  hazard_check hazards{rank, steps};
  uint32_t first = 0; // of the round
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const auto& x = steps[i];
    auto before = i == 0 ? 0 : steps[i - 1].round;
    if (x.round < before || x.round >= what.rounds)
      return invalid(fmt::format("{}: round {} after round {} of {}", place_of(rank, i, x), x.round, before,
                                 what.rounds));
    if (i != 0 && x.round != before) {
      RETURN_ERROR(hazards.check(first, i));
      first = i;
    }
    if (x.then && i == first)
      return invalid(place_of(rank, i, x) + ": is marked `then` and is the first step of its round");
    if (const auto fault = check_step(rank, world_size, what, counts, x))
      return with_context(place_of(rank, i, x), fault);
  }
  return steps.empty() ? caf::error{} : hazards.check(first, static_cast<uint32_t>(steps.size()));
}

} // namespace ringmaster
