#include "tests/support/schedule_interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

namespace ringmaster::test {

namespace {

std::string describe(const block_range& x) {
  static constexpr const char* names[] = {"input", "output", "scratch"};
  return fmt::format("{}[{}, {})", names[static_cast<int>(x.where)], x.offset, x.offset + x.count);
}

bool overlap(const block_range& a, const block_range& b) {
  return a.where == b.where && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

bool writes(const step& x) { return x.what != action::send; }
bool reads_own(const step& x) { return x.what != action::recv; }
bool receives(const step& x) { return x.what == action::recv || x.what == action::recv_reduce; }
bool is_local(const step& x) { return x.what == action::copy || x.what == action::reduce; }

/// A step of a rank, by its place in the schedule.
struct step_ref {
  uint32_t rank = 0;
  size_t index = 0;
};

class walk {
public:
  walk(const std::vector<schedule>& ranks, uint64_t count, uint64_t seed, const step_effect& effect)
    : ranks_(ranks), count_(count), random_(seed), effect_(effect), open_(ranks.size()) {
    result_.steps.resize(ranks.size());
    result_.sent.resize(ranks.size());
    result_.received.resize(ranks.size());
  }

  interpretation run() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      check_steps(rank);
    for (uint32_t rank = 0; rank < ranks_.size() && !failed(); ++rank)
      open_round(rank);
    while (!failed() && !ready_.empty())
      do_one();
    if (!failed())
      check_end();
    return std::move(result_);
  }

private:
  /// The steps of a rank's current round: [first, last), of which `left` are not done.
  struct open_steps {
    size_t first = 0, last = 0, left = 0;
  };

  /// The blocks from one rank to another: the k-th send meets the k-th receive.
  struct channel {
    std::vector<size_t> sends, receives;
    size_t met = 0;
  };

  bool failed() const { return !result_.fault.empty(); }

  void fault(std::string text) {
    if (!failed())
      result_.fault = std::move(text);
  }

  const step& at(step_ref x) const { return ranks_[x.rank].steps[x.index]; }

  void check_range(uint32_t rank, const step& x, const block_range& range) {
    auto limit = range.where == buffer::scratch ? ranks_[rank].scratch_count : count_;
    if (range.count == 0)
      fault(fmt::format("rank {}, round {}: a step without elements", rank, x.round));
    if (range.offset > limit || range.count > limit - range.offset)
      fault(fmt::format("rank {}, round {}: {} is out of bounds, there are {} elements", rank, x.round,
                        describe(range), limit));
  }

  void check_steps(uint32_t rank) {
    uint32_t round = 0;
    for (const auto& x : ranks_[rank].steps) {
      if (x.round < round || x.round >= ranks_[rank].rounds)
        fault(fmt::format("rank {}: round {} after round {} of {}", rank, x.round, round, ranks_[rank].rounds));
      round = x.round;
      if (!is_local(x) && (x.peer >= ranks_.size() || x.peer == rank))
        fault(fmt::format("rank {}, round {}: {} is no peer", rank, x.round, x.peer));
      if (reads_own(x))
        check_range(rank, x, x.source);
      if (writes(x))
        check_range(rank, x, x.destination);
      if (writes(x) && reads_own(x) && x.source.count != x.destination.count)
        fault(fmt::format("rank {}, round {}: {} does not fit {}", rank, x.round, describe(x.source),
                          describe(x.destination)));
      if (writes(x) && x.destination.where == buffer::input)
        fault(fmt::format("rank {}, round {}: writes {}", rank, x.round, describe(x.destination)));
    }
  }

  /// All steps of a round may be under way at once, so their ranges must not get in each other's way.
  void check_hazards(uint32_t rank, const open_steps& open) {
    const auto& steps = ranks_[rank].steps;
    for (auto w = open.first; w < open.last; ++w) {
      if (!writes(steps[w]))
        continue;
      const auto& written = steps[w].destination;
      if (reads_own(steps[w]) && steps[w].source != written && overlap(steps[w].source, written))
        fault(fmt::format("rank {}, round {}: {} overlaps its own source {}", rank, steps[w].round, describe(written),
                          describe(steps[w].source)));
      for (auto other = open.first; other < open.last; ++other) {
        if (other == w)
          continue;
        if (reads_own(steps[other]) && overlap(steps[other].source, written))
          fault(fmt::format("rank {}, round {}: {} is written while it may still be read", rank, steps[w].round,
                            describe(written)));
        if (writes(steps[other]) && overlap(steps[other].destination, written))
          fault(fmt::format("rank {}, round {}: {} is written twice", rank, steps[w].round, describe(written)));
      }
    }
  }

  /// Opens the next round in which the rank has something to do.
  void open_round(uint32_t rank) {
    const auto& steps = ranks_[rank].steps;
    auto& open = open_[rank];
    open.first = open.last;
    while (open.last < steps.size() && steps[open.last].round == steps[open.first].round)
      ++open.last;
    open.left = open.last - open.first;
    check_hazards(rank, open);
    for (auto index = open.first; index < open.last; ++index)
      offer({rank, index});
  }

  void offer(step_ref x) {
    const auto& what = at(x);
    if (is_local(what)) {
      ready_.push_back({x, x});
      return;
    }
    auto is_receive = receives(what);
    auto& c = channels_[is_receive ? std::pair{what.peer, x.rank} : std::pair{x.rank, what.peer}];
    (is_receive ? c.receives : c.sends).push_back(x.index);
    if (c.met == std::min(c.sends.size(), c.receives.size()))
      return;
    step_ref sender{is_receive ? what.peer : x.rank, c.sends[c.met]};
    step_ref receiver{is_receive ? x.rank : what.peer, c.receives[c.met]};
    ++c.met;
    ready_.push_back({sender, receiver});
  }

  void do_one() {
    std::swap(ready_[random_() % ready_.size()], ready_.back());
    auto [sender, receiver] = ready_.back();
    ready_.pop_back();
    const auto& from = at(sender);
    const auto& to = at(receiver);
    if (from.source.count != to.destination.count) {
      fault(fmt::format("rank {}, round {}: sends {} elements to rank {}, which expects {} in round {}", sender.rank,
                        from.round, from.source.count, receiver.rank, to.destination.count, to.round));
      return;
    }
    effect_(receiver.rank, to, sender.rank, from.source);
    if (!is_local(to)) {
      result_.sent[sender.rank] += from.source.count;
      result_.received[receiver.rank] += from.source.count;
      end_step(sender.rank);
    }
    end_step(receiver.rank);
  }

  void end_step(uint32_t rank) {
    ++result_.steps[rank];
    if (--open_[rank].left == 0)
      open_round(rank);
  }

  void check_end() {
    std::string waiting;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      if (open_[rank].left != 0)
        waiting += fmt::format("{}rank {} in round {}", waiting.empty() ? "" : ", ", rank,
                               ranks_[rank].steps[open_[rank].first].round);
    if (!waiting.empty())
      fault("deadlock: " + waiting);
  }

  const std::vector<schedule>& ranks_;
  uint64_t count_;
  std::mt19937_64 random_;
  const step_effect& effect_;
  std::vector<open_steps> open_;
  std::map<std::pair<uint32_t, uint32_t>, channel> channels_;
  std::vector<std::pair<step_ref, step_ref>> ready_; ///< Sender and receiver; the same for a local step.
  interpretation result_;
};

/// One element: whose it is a sum of, and how often it was finished.
struct symbol {
  contributions of;
  uint64_t index = 0;
  uint32_t finished = 0;
};

symbol combine(const symbol& a, const symbol& b) {
  symbol result = a;
  result.of.resize(std::max(a.of.size(), b.of.size()));
  for (size_t rank = 0; rank < b.of.size(); ++rank)
    result.of[rank] += b.of[rank];
  result.finished += b.finished;
  if (a.index != b.index)
    result.index = UINT64_MAX; // elements that do not belong together
  return result;
}

} // namespace

interpretation interpret(const std::vector<schedule>& ranks, uint64_t count, uint64_t seed,
                         const step_effect& effect) {
  return walk{ranks, count, seed, effect}.run();
}

interpretation prove_all_reduce(const std::vector<schedule>& ranks, uint64_t count, uint64_t seed) {
  std::vector<rank_memory<symbol>> memory(ranks.size());
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (uint64_t i = 0; i < count; ++i) {
      symbol x{contributions(ranks.size()), i, 0};
      x.of[rank] = 1;
      memory[rank].input.push_back(std::move(x));
    }
  auto result = interpret_on(memory, ranks, count, seed, combine, [](symbol x) {
    ++x.finished;
    return x;
  });
  contributions each_once(ranks.size(), 1);
  for (size_t rank = 0; rank < ranks.size() && result.fault.empty(); ++rank)
    for (uint64_t i = 0; i < count && result.fault.empty(); ++i) {
      const auto& x = memory[rank].output[i];
      if (x.of != each_once || x.index != i)
        result.fault = fmt::format("rank {}: output[{}] does not hold each rank's element once", rank, i);
      else if (x.finished != 1)
        result.fault = fmt::format("rank {}: output[{}] was finished {} times", rank, i, x.finished);
    }
  return result;
}

} // namespace ringmaster::test
