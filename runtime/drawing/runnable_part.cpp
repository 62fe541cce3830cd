#include "runtime/drawing/runnable_part.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace ringmaster {

namespace {

class pruning {
public:
  pruning(proto::CollectiveKind kind, const plan_request& request, std::span<const schedule> ranks)
    : kind_(kind), request_(request), ranks_(ranks), partners_(ranks.size()), dropped_(ranks.size()) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      partners_[rank].resize(ranks[rank].steps.size());
      dropped_[rank].resize(ranks[rank].steps.size(), false);
    }
    match();
    ensure(partners_.size() == ranks_.size() && dropped_.size() == ranks_.size(), "every rank is examined");
  }

  std::vector<schedule> run() {
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      for (size_t i = 0; i < steps(rank).size(); ++i)
        if (is_faulty(rank, i))
          drop(rank, i);
    while (std::exchange(changed_, false))
      for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
        drop_what_follows(rank);
    std::vector<schedule> result(ranks_.begin(), ranks_.end());
    for (size_t rank = 0; rank < result.size(); ++rank) {
      result[rank].steps.clear();
      for (size_t i = 0; i < dropped_[rank].size(); ++i)
        if (!dropped_[rank][i])
          result[rank].steps.push_back(ranks_[rank].steps[i]);
    }
    return result;
  }

private:
  const std::vector<step>& steps(uint32_t rank) const { return ranks_[rank].steps; }

  bool has_peer(uint32_t rank, const step& x) const { return x.peer < ranks_.size() && x.peer != rank; }

  /// For each pair of ranks, the k-th send matches the k-th receive.
  void match() {
    std::map<std::pair<uint32_t, uint32_t>, std::array<std::vector<step_ref>, 2>> channels; // sends, receives
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
      for (uint32_t i = 0; i < steps(rank).size(); ++i) {
        const auto& x = steps(rank)[i];
        if (is_local(x) || !has_peer(rank, x))
          continue;
        auto ends = receives(x) ? std::pair{x.peer, rank} : std::pair{rank, x.peer};
        channels[ends][receives(x) ? 1 : 0].push_back({rank, i});
      }
    for (auto& [ends, both] : channels)
      for (size_t i = 0; i < std::min(both[0].size(), both[1].size()); ++i) {
        partners_[both[0][i].rank][both[0][i].index] = both[1][i];
        partners_[both[1][i].rank][both[1][i].index] = both[0][i];
      }
  }

  bool is_outside(uint32_t rank, const block_range& x) const {
    const uint64_t sizes[] = {input_count(kind_, request_, rank), output_count(kind_, request_, rank),
                              ranks_[rank].scratch_count};
    auto size = sizes[static_cast<size_t>(x.where)];
    return x.offset > size || x.count > size - x.offset;
  }

  bool is_faulty(uint32_t rank, size_t index) const {
    const auto& x = steps(rank)[index];
    if (x.round >= ranks_[rank].rounds || is_outside(rank, x.source) || is_outside(rank, x.destination))
      return true;
    if (x.what == action::fold)
      return x.source.count < x.destination.count || (x.destination.count == 0 && x.source.count != 0);
    if (x.what != action::send && x.what != action::recv && x.source.count != x.destination.count)
      return true;
    if (is_local(x))
      return false;
    auto other = partners_[rank][index];
    if (!other)
      return true;
    const auto& y = steps(other->rank)[other->index];
    return receives(x) ? y.source.count != x.destination.count : x.source.count != y.destination.count;
  }

  void drop(uint32_t rank, size_t index) {
    if (dropped_[rank][index])
      return;
    dropped_[rank][index] = changed_ = true;
    if (auto other = partners_[rank][index])
      drop(other->rank, other->index);
  }

  /// Drops steps that depend on a dropped one: of later rounds, of the same chain, and later messages of the same pair
  /// of ranks.
  void drop_what_follows(uint32_t rank) {
    std::optional<uint32_t> last_round;
    std::vector<std::pair<uint32_t, bool>> broken; // peers, and whether they send
    for (size_t i = 0; i < steps(rank).size(); ++i) {
      const auto& x = steps(rank)[i];
      auto channel = std::pair{x.peer, receives(x)};
      auto follows = (last_round && x.round != *last_round) || (x.then && i != 0 && dropped_[rank][i - 1])
                     || (!is_local(x) && std::find(broken.begin(), broken.end(), channel) != broken.end());
      if (follows)
        drop(rank, i);
      if (!dropped_[rank][i])
        continue;
      last_round = last_round.value_or(x.round);
      if (!is_local(x))
        broken.push_back(channel);
    }
  }

  proto::CollectiveKind kind_;
  const plan_request& request_;
  std::span<const schedule> ranks_;
  std::vector<std::vector<std::optional<step_ref>>> partners_; ///< By rank and step.
  std::vector<std::vector<bool>> dropped_;
  bool changed_ = false;
};

} // namespace

std::vector<schedule> runnable_part(proto::CollectiveKind kind, const plan_request& request,
                                    std::span<const schedule> ranks) {
  return pruning{kind, request, ranks}.run();
}

} // namespace ringmaster
