#include "runtime/schedule/step_partners.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

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
