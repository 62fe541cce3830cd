#pragma once

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ringmaster::test {

/// When a call was made and answered, by a clock that all clients share. A call whose outcome is not known, since its
/// client was never answered, may have happened at any time after it was made, or not at all.
struct call_times {
  static constexpr uint64_t never = UINT64_MAX;

  uint64_t called = 0;
  uint64_t answered = never;

  bool is_known() const { return answered != never; }
};

/// Why no order explains a history.
struct no_order {
  size_t ordered = 0;            ///< The longest order that was found.
  std::vector<size_t> in_flight; ///< Then one of these had to be next, and none can be: indices into the history.
};

/// Whether the calls of concurrent clients can be put in one order in which each happens at a moment between its call
/// and its answer, and a sequential model gives the same answers: linearizability (Herlihy and Wing 1990). The search
/// is that of Wing and Gong (1993), with the memory of Lowe (2017): a set of calls that has led to a state is tried
/// once. It takes time in proportion to the number of calls, as long as few of them are in flight at once.
///
///   Model::state                                 default: before the first call; copyable, with ==
///   Model::hash(state) -> size_t
///   Model::next(state, call) -> vector<state>    the states after the call with this answer; none: not possible. A
///   call
///                                                whose outcome is not known may lead to several, one for each outcome
///   Model::alike(a, b) -> bool                   whether two calls whose outcome is not known can do the same
///   call.times -> call_times
///
/// A history is linearizable if those of its objects are, each for itself (Herlihy and Wing, theorem 1): to check the
/// calls of each object alone is much faster.
template <class Model, class Call>
class linearization {
public:
  /// `history` outlives it.
  explicit linearization(const std::vector<Call>& history) : history_(history) { line_up(); }

  /// None: there is an order, or `has_given_up`.
  std::optional<no_order> problem() {
    typename Model::state state;
    size_t at = next_[head];
    while (known_left_ > 0) {
      if (has_given_up())
        return std::nullopt;
      ensure(at != end, "an answer that is left is met before the end");
      if (is_call(at)) {
        if (may_be_next(at / 2) && take(at, Model::next(state, history_[at / 2]), 0, state))
          at = next_[head];
        else
          at = next_[at];
        continue;
      }
      note_depth();
      // This call has been answered, so it has happened before all that follow: what was chosen before was wrong.
      if (chosen_.empty())
        return std::move(deepest_);
      at = undo(state);
    }
    return std::nullopt;
  }

  /// The search would take more memory than it may: calls whose outcome is not known may have many orders.
  bool has_given_up() const { return seen_.size() > seen_max; }

private:
  static constexpr size_t head = SIZE_MAX - 1, end = SIZE_MAX;
  static constexpr size_t seen_max = 1'000'000; ///< Below a GiB.

  /// A call that was chosen to be next.
  struct choice {
    size_t call; ///< Its place in the line.
    typename Model::state before;
    std::vector<typename Model::state> outcomes;
    size_t outcome;
  };
  struct links {
    std::vector<size_t> of;
    size_t of_head = end;
    size_t& operator[](size_t x) { return x == head ? of_head : of[x]; }
  };
  using call_set = std::vector<uint64_t>;

  // Places in the line: 2 i is the call of history_[i], 2 i + 1 its answer.
  static bool is_call(size_t place) { return place % 2 == 0; }

  /// Of calls that can do the same, and of which it is not known whether they have, the first is as good as any.
  bool may_be_next(size_t call) const {
    const auto first = first_alike_.find(call);
    return first == first_alike_.end() || (done_[first->second / 64] >> (first->second % 64)) % 2 != 0;
  }

  void find_alike() {
    std::vector<size_t> latest; // of those that are alike
    for (auto x = next_[head]; x != end; x = next_[x]) {
      if (history_[x / 2].times.is_known())
        continue;
      const auto its = std::ranges::find_if(latest, [&](auto y) { return Model::alike(history_[y], history_[x / 2]); });
      if (its == latest.end()) {
        latest.push_back(x / 2);
        continue;
      }
      first_alike_[x / 2] = *its;
      *its = x / 2;
    }
  }

  void line_up() {
    std::vector<size_t> line;
    for (size_t i = 0; i < history_.size(); ++i) {
      line.push_back(2 * i);
      if (history_[i].times.is_known()) {
        line.push_back(2 * i + 1);
        ensure(history_[i].times.called <= history_[i].times.answered, "a call is answered after it was made");
      }
    }
    known_left_ = line.size() - history_.size();
    const auto when = [this](size_t x) {
      auto& its = history_[x / 2].times;
      return is_call(x) ? its.called : its.answered;
    };
    std::ranges::stable_sort(line, [&](size_t a, size_t b) { // of one moment, calls come first
      return std::pair{when(a), !is_call(a)} < std::pair{when(b), !is_call(b)};
    });
    next_.of.assign(2 * history_.size(), end);
    last_.of.assign(2 * history_.size(), head);
    size_t before = head;
    for (auto x : line) {
      next_[before] = x;
      last_[x] = before;
      before = x;
    }
    done_.assign(history_.size() / 64 + 1, 0);
    find_alike();
  }

  /// Chooses the call to be next, with the first outcome from this one on that leads to something new.
  bool take(size_t at, std::vector<typename Model::state> outcomes, size_t from, typename Model::state& state) {
    mark(at / 2, true);
    for (size_t i = from; i < outcomes.size(); ++i)
      if (is_new(outcomes[i])) {
        unlink(at);
        if (history_[at / 2].times.is_known()) {
          unlink(at + 1);
          --known_left_;
        }
        auto before = std::exchange(state, outcomes[i]);
        chosen_.push_back({at, std::move(before), std::move(outcomes), i});
        return true;
      }
    mark(at / 2, false);
    return false;
  }

  /// Takes the latest choice back, and the next outcome of it or the call after it. Returns where to go on.
  size_t undo(typename Model::state& state) {
    auto latest = std::move(chosen_.back());
    chosen_.pop_back();
    state = std::move(latest.before);
    if (history_[latest.call / 2].times.is_known()) {
      link(latest.call + 1);
      ++known_left_;
    }
    link(latest.call);
    mark(latest.call / 2, false);
    return take(latest.call, std::move(latest.outcomes), latest.outcome + 1, state) ? next_[head] : next_[latest.call];
  }

  void note_depth() {
    if (deepest_ && deepest_->ordered >= chosen_.size())
      return;
    deepest_ = no_order{chosen_.size(), {}};
    for (auto x = next_[head]; x != end && is_call(x); x = next_[x])
      deepest_->in_flight.push_back(x / 2);
  }

  void unlink(size_t x) {
    next_[last_[x]] = next_[x];
    if (next_[x] != end)
      last_[next_[x]] = last_[x];
  }
  void link(size_t x) { // in the opposite order of `unlink`
    next_[last_[x]] = x;
    if (next_[x] != end)
      last_[next_[x]] = x;
  }
  void mark(size_t call, bool done) {
    const auto bit = uint64_t{1} << (call % 64);
    done_[call / 64] = done ? done_[call / 64] | bit : done_[call / 64] & ~bit;
  }
  bool is_new(const typename Model::state& x) {
    size_t hash = Model::hash(x);
    for (auto word : done_)
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u + (hash >> 29);
    auto [from, to] = seen_.equal_range(hash);
    for (; from != to; ++from)
      if (from->second.first == done_ && from->second.second == x)
        return false;
    seen_.emplace(hash, std::pair{done_, x});
    return true;
  }

  const std::vector<Call>& history_;
  links next_, last_;
  std::unordered_map<size_t, size_t>
    first_alike_;         ///< Of a call that is like another one: that one, which was made before.
  size_t known_left_ = 0; ///< Answers that are in the line.
  call_set done_;
  std::vector<choice> chosen_;
  std::unordered_multimap<size_t, std::pair<call_set, typename Model::state>> seen_;
  std::optional<no_order> deepest_;
};

} // namespace ringmaster::test
