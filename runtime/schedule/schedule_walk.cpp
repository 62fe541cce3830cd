#include "runtime/schedule/schedule_walk.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace ringmaster {

namespace {

class walk {
public:
  walk(const std::vector<schedule>& ranks, const step_partners& partners, uint64_t seed, walk_observer& observer)
    : ranks_(ranks), partners_(partners), random_(seed), observer_(observer), open_(ranks.size()),
      state_(ranks.size()) {
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      state_[rank].resize(ranks[rank].steps.size(), progress::waiting);
    result_.rounds = ranks.empty() ? 0 : ranks[0].rounds;
    for (auto* by_rank :
         {&result_.elements_sent, &result_.messages_sent, &result_.elements_received, &result_.messages_received})
      by_rank->resize(ranks.size());
  }

  walk_result run() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      open_round(rank);
    while (!result_.fault && !ready_.empty())
      do_one();
    if (!result_.fault)
      result_.fault = check_end();
    return std::move(result_);
  }

private:
  enum class progress : uint8_t { waiting, started, ended };

  /// The steps of a rank's current round: [first, last), of which `left` have not ended.
  struct open_steps {
    uint32_t first = 0, last = 0, left = 0;
  };

  const step& at(step_ref x) const { return ranks_[x.rank].steps[x.index]; }
  progress& state(step_ref x) { return state_[x.rank][x.index]; }
  step_ref partner(step_ref x) const { return {at(x).peer, partners_.of[x.rank][x.index]}; }

  /// Opens the next round in which the rank has something to do.
  void open_round(uint32_t rank) {
    const auto& steps = ranks_[rank].steps;
    auto& open = open_[rank];
    open.first = open.last;
    while (open.last < steps.size() && steps[open.last].round == steps[open.first].round)
      ++open.last;
    open.left = open.last - open.first;
    for (auto index = open.first; index < open.last; ++index)
      if (!steps[index].then)
        start({rank, index});
  }

  void start(step_ref x) {
    state(x) = progress::started;
    observer_.started(x);
    const auto& what = at(x);
    if (is_local(what))
      ready_.push_back({x, x});
    else if (auto other = partner(x); state(other) == progress::started)
      ready_.push_back(receives(what) ? pair{other, x} : pair{x, other});
  }

  void do_one() {
    // Among the latest only: what they touch is still in the cache, which halves the time for a thousand ranks.
    constexpr size_t window = 8;
    std::swap(ready_[ready_.size() - 1 - random_() % std::min(ready_.size(), window)], ready_.back());
    auto [sender, receiver] = ready_.back();
    ready_.pop_back();
    const auto& from = at(sender);
    const auto& to = at(receiver);
    auto elements = from.source.count;
    if (elements != to.destination.count && to.what != action::fold) {
      result_.fault = invalid(fmt::format("{}: {} elements meet {} of rank {}, round {}, step {} ({})",
                                          place_of(sender.rank, sender.index, from), elements, to.destination.count,
                                          receiver.rank, to.round, receiver.index, text_of(to)));
      return;
    }
    result_.fault = observer_.moved(sender, receiver);
    if (result_.fault)
      return;
    if (!is_local(to)) {
      result_.elements_sent[sender.rank] += elements;
      ++result_.messages_sent[sender.rank];
      result_.elements_received[receiver.rank] += elements;
      ++result_.messages_received[receiver.rank];
      end(sender);
    }
    end(receiver);
  }

  void end(step_ref x) {
    state(x) = progress::ended;
    auto& open = open_[x.rank];
    if (--open.left == 0)
      open_round(x.rank);
    else if (x.index + 1 < open.last && ranks_[x.rank].steps[x.index + 1].then)
      start({x.rank, x.index + 1});
  }

  /// A step under way on the rank that cannot end; the one that `wanted`, which is not under way, waits for.
  step_ref stuck_on(uint32_t rank, uint32_t wanted) {
    const auto& open = open_[rank];
    if (wanted >= open.first && wanted < open.last) // behind a chain
      while (state_[rank][wanted] != progress::started)
        --wanted;
    else
      for (wanted = open.first; state_[rank][wanted] != progress::started;)
        ++wanted;
    return {rank, wanted};
  }

  /// When no further step can run, all ranks have finished, or some wait for each other in a circle: a deadlock.
  caf::error check_end() {
    auto stuck = std::find_if(open_.begin(), open_.end(), [](auto& x) { return x.left != 0; });
    if (stuck == open_.end())
      return {};
    std::vector<step_ref> path;
    auto place_in_path = [&](step_ref x) {
      return std::find_if(path.begin(), path.end(), [&](auto& y) { return y.rank == x.rank && y.index == x.index; });
    };
    auto x = stuck_on(static_cast<uint32_t>(stuck - open_.begin()), step_partners::none);
    while (place_in_path(x) == path.end()) {
      path.push_back(x);
      x = stuck_on(partner(x).rank, partner(x).index);
    }
    auto circle = place_in_path(x);
    std::string circle_text;
    for (auto y = circle; y != path.end(); ++y)
      circle_text += fmt::format("{}rank {}, round {}, step {} ({}) waits for rank {}", y == circle ? "" : ", ",
                                 y->rank, at(*y).round, y->index, text_of(at(*y)), at(*y).peer);
    return invalid("deadlock: " + circle_text);
  }

  struct pair {
    step_ref sender, receiver;
  };

  const std::vector<schedule>& ranks_;
  const step_partners& partners_;
  std::mt19937_64 random_;
  walk_observer& observer_;
  std::vector<open_steps> open_;
  std::vector<std::vector<progress>> state_;
  std::vector<pair> ready_; ///< The same twice for a local step.
  walk_result result_;
};

} // namespace

walk_result walk_schedules(const std::vector<schedule>& ranks, const std::vector<buffer_counts>& counts, uint64_t seed,
                           walk_observer& observer) {
  walk_result failed;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    failed.fault = check_schedule(rank, static_cast<uint32_t>(ranks.size()), ranks[rank], counts[rank]);
    if (!failed.fault && ranks[rank].rounds != ranks[0].rounds)
      failed.fault = invalid(fmt::format("rank {} has {} rounds, and rank 0 has {}", rank, ranks[rank].rounds,
                                         ranks[0].rounds));
    if (failed.fault)
      return failed;
  }
  auto partners = match_steps(ranks);
  if (partners.fault) {
    failed.fault = std::move(partners.fault);
    return failed;
  }
  return walk{ranks, partners, seed, observer}.run();
}

namespace {

/// The sends to one rank, of which those of a sender stand together, in the order of its list.
class sends_to_rank {
public:
  explicit sends_to_rank(uint32_t world_size) : next_(world_size), end_(world_size) {}

  void reset(const std::vector<step_ref>& sends) {
    sends_ = &sends;
    std::fill(next_.begin(), next_.end(), 0);
    std::fill(end_.begin(), end_.end(), 0);
    for (uint32_t i = 0; i < sends.size(); ++i) {
      auto sender = sends[i].rank;
      if (end_[sender] == 0)
        next_[sender] = i;
      end_[sender] = i + 1;
    }
  }

  /// The sender's step that comes next; none where there is no other.
  uint32_t take(uint32_t sender) {
    return next_[sender] == end_[sender] ? step_partners::none : (*sends_)[next_[sender]++].index;
  }

private:
  const std::vector<step_ref>* sends_ = nullptr;
  std::vector<uint32_t> next_, end_; ///< By sender: places in the list.
};

/// By receiver.
std::vector<std::vector<step_ref>> all_sends(const std::vector<schedule>& ranks) {
  std::vector<std::vector<step_ref>> result(ranks.size());
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (uint32_t i = 0; i < ranks[rank].steps.size(); ++i)
      if (auto& x = ranks[rank].steps[i]; x.what == action::send)
        result[x.peer].push_back({rank, i});
  return result;
}

} // namespace

step_partners match_steps(const std::vector<schedule>& ranks) {
  step_partners result;
  for (auto& rank : ranks)
    result.of.emplace_back(rank.steps.size(), step_partners::none);
  const auto by_receiver = all_sends(ranks);
  sends_to_rank sends{static_cast<uint32_t>(ranks.size())};
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    sends.reset(by_receiver[rank]);
    const auto& steps = ranks[rank].steps;
    for (uint32_t i = 0; i < steps.size(); ++i) {
      if (!receives(steps[i]))
        continue;
      auto send = sends.take(steps[i].peer);
      if (send == step_partners::none) {
        result.fault = invalid(fmt::format("{}: rank {} sends nothing more that it could take",
                                           place_of(rank, i, steps[i]), steps[i].peer));
        return result;
      }
      result.of[rank][i] = send;
      result.of[steps[i].peer][send] = i;
    }
    for (auto send : by_receiver[rank])
      if (result.of[send.rank][send.index] == step_partners::none) {
        result.fault = invalid(fmt::format("{}: left over: rank {} takes nothing more from it",
                                           place_of(send.rank, send.index, ranks[send.rank].steps[send.index]), rank));
        return result;
      }
  }
  return result;
}

} // namespace ringmaster
