#include "tests/support/port_model.hpp"

#include "runtime/schedule/schedule_check.hpp"
#include "runtime/schedule/schedule_walk.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

namespace ringmaster::test {

namespace {

class port_model {
public:
  port_model(const std::vector<schedule>& ranks, uint64_t latency, uint64_t per_element)
    : ranks_(ranks), partners_(match_steps(ranks)), latency_(latency), per_element_(per_element), ports_(ranks.size()) {
    for (const auto& rank : ranks)
      begun_.emplace_back(rank.steps.size(), never);
  }

  uint64_t run() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      open_round(rank, 0);
    while (!waiting_.empty()) {
      auto [start, sender, index] = waiting_.top();
      waiting_.pop();
      if (auto possible = start_of({sender, index}); possible != start)
        waiting_.push({possible, sender, index});
      else
        transfer({sender, index}, start);
    }
    return last_end_;
  }

private:
  static constexpr uint64_t never = UINT64_MAX;

  struct rank_state {
    uint64_t out_free = 0, in_free = 0;
    uint32_t first = 0, last = 0, left = 0; ///< The steps of the round.
    uint64_t round_end = 0;
  };

  step_ref partner_of(step_ref x) const { return {at(x).peer, partners_.of[x.rank][x.index]}; }
  const step& at(step_ref x) const { return ranks_[x.rank].steps[x.index]; }

  void open_round(uint32_t rank, uint64_t now) {
    auto& state = ports_[rank];
    const auto& steps = ranks_[rank].steps;
    state.first = state.last;
    while (state.last < steps.size() && steps[state.last].round == steps[state.first].round)
      ++state.last;
    state.left = state.last - state.first;
    state.round_end = now;
    const auto [first, last] = std::pair{state.first, state.last}; // a round of local steps ends within this loop
    for (auto index = first; index < last; ++index)
      if (!steps[index].then)
        begin({rank, index}, now);
  }

  void begin(step_ref x, uint64_t now) {
    begun_[x.rank][x.index] = now;
    if (is_local(at(x)))
      return end(x, now);
    auto partner = partner_of(x);
    if (begun_[partner.rank][partner.index] == never)
      return;
    auto sender = at(x).what == action::send ? x : partner;
    waiting_.push({start_of(sender), sender.rank, sender.index});
  }

  uint64_t start_of(step_ref sender) const {
    auto receiver = partner_of(sender);
    return std::max({begun_[sender.rank][sender.index], begun_[receiver.rank][receiver.index],
                     ports_[sender.rank].out_free, ports_[receiver.rank].in_free});
  }

  void transfer(step_ref sender, uint64_t start) {
    auto receiver = partner_of(sender);
    auto free = start + at(sender).source.count * per_element_;
    ports_[sender.rank].out_free = free;
    ports_[receiver.rank].in_free = free;
    end(sender, free + latency_);
    end(receiver, free + latency_);
  }

  void end(step_ref x, uint64_t now) {
    auto& state = ports_[x.rank];
    last_end_ = std::max(last_end_, now);
    state.round_end = std::max(state.round_end, now);
    if (x.index + 1 < state.last && ranks_[x.rank].steps[x.index + 1].then)
      begin({x.rank, x.index + 1}, now);
    if (--state.left == 0)
      open_round(x.rank, state.round_end);
  }

  const std::vector<schedule>& ranks_;
  step_partners partners_;
  uint64_t latency_, per_element_;
  std::vector<rank_state> ports_;
  std::vector<std::vector<uint64_t>> begun_;
  using message = std::tuple<uint64_t, uint32_t, uint32_t>; ///< When it can start; sender, step.
  std::priority_queue<message, std::vector<message>, std::greater<>> waiting_;
  uint64_t last_end_ = 0;
};

} // namespace

uint64_t port_model_time(const std::vector<schedule>& ranks, uint64_t latency, uint64_t per_element) {
  return port_model{ranks, latency, per_element}.run();
}

} // namespace ringmaster::test
