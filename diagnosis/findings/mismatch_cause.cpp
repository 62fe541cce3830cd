#include "diagnosis/findings/mismatch_cause.hpp"

#include "diagnosis/findings/call_history.hpp"
#include "diagnosis/findings/call_match.hpp"

#include <algorithm>

namespace ringmaster::diagnosis {

namespace {

/// A rank's part of the calls that are compared.
struct compared_call {
  uint32_t rank = 0; ///< Global.
  const rank_records* records = nullptr;
  const rank_call* call = nullptr;
  size_t index() const { return static_cast<size_t>(call - records->calls.data()); }
};

std::vector<compared_call> calls_of(const wait_graph& graph, const waited_call& x) {
  std::vector<compared_call> result;
  auto& job = graph.job();
  for (auto member : job.groups[x.call.group].members)
    if (auto* records = job.find(member))
      if (auto* call = find_call(*records, x.call.group, x.call.sequence))
        result.push_back({member, records, call});
  return result;
}

class mismatch_judge {
public:
  mismatch_judge(const job_records& job, std::vector<compared_call> all) : job_(job), all_(std::move(all)) {
    std::vector<const rank_call*> calls;
    for (auto& x : all_)
      calls.push_back(x.call);
    sets_ = matching_sets(job, calls);
  }

  cause judge();

private:
  const compared_call& front(size_t set) const { return all_[sets_[set].front()]; }
  void break_tie(cause& result);
  /// 1 if the set's calls are what history expects, -1 if history expects others, 0 if it does not say.
  int expected_by_history(size_t set) const;
  size_t siblings_like(size_t set) const;
  void name_kind(cause& result);

  const job_records& job_;
  std::vector<compared_call> all_;
  std::vector<std::vector<size_t>> sets_;
};

int mismatch_judge::expected_by_history(size_t set) const {
  auto& x = front(set);
  if (auto deviation = deviation_of(job_, *x.records))
    return deviation->at <= x.index() ? -1 : 1;
  return next_expected(job_, *x.records) ? 1 : 0;
}

/// The number of groups of the same description and size whose calls with this number match the set's.
size_t mismatch_judge::siblings_like(size_t set) const {
  auto& x = front(set);
  auto& own = job_.groups[x.call->group];
  size_t result = 0;
  for (uint32_t i = 0; i < job_.groups.size(); ++i) {
    auto& other = job_.groups[i];
    if (i == x.call->group || other.description != own.description || other.members.size() != own.members.size())
      continue;
    auto* records = job_.find(other.members.front());
    auto* call = records == nullptr ? nullptr : find_call(*records, i, x.call->sequence);
    result += call != nullptr && !mismatch_of(job_, *call, *x.call);
  }
  return result;
}

void mismatch_judge::break_tie(cause& result) {
  const auto first = expected_by_history(0), second = expected_by_history(1);
  auto right = first > second ? 0 : second > first ? 1 : -1;
  if (right < 0) {
    const auto like_first = siblings_like(0), like_second = siblings_like(1);
    right = like_first > like_second ? 0 : like_second > like_first ? 1 : -1;
  }
  if (right == 1)
    std::swap(sets_[0], sets_[1]);
  result.sure = right < 0 ? certainty::ambiguous : certainty::likely;
}

void mismatch_judge::name_kind(cause& result) {
  auto &right = front(0), &culprit = front(1);
  result.kind = *mismatch_of(job_, *right.call, *culprit.call);
  if (result.sure == certainty::ambiguous)
    return;
  auto next = [&](const compared_call& x) { return find_call(*x.records, x.call->group, x.call->sequence + 1); };
  if (auto deviation = deviation_of(job_, *culprit.records); deviation && deviation->at <= culprit.index()) {
    result.kind = deviation->kind;
    if (!deviation->sure)
      result.sure = std::max(result.sure, certainty::likely);
    if (deviation->expected.group != culprit.call->group || deviation->kind == fault_kind::never_called)
      result.awaited = deviation->expected;
    return;
  }
  // No earlier steps: what the others call next tells an exchange of two calls, and a call that was left out.
  auto *next_right = next(right), *own_next = next(culprit);
  if (result.kind == fault_kind::other_root || next_right == nullptr || mismatch_of(job_, *next_right, *culprit.call))
    return;
  const bool exchanged = own_next != nullptr && !mismatch_of(job_, *own_next, *right.call);
  result.kind = exchanged ? fault_kind::other_order : fault_kind::never_called;
  if (own_next == nullptr)
    result.sure = std::max(result.sure, certainty::likely);
}

cause mismatch_judge::judge() {
  cause result;
  if (sets_[0].size() == sets_[1].size())
    break_tie(result);
  result.awaited = *front(0).call;
  result.has_call = true;
  for (size_t i = result.sure == certainty::ambiguous ? 0 : 1; i < sets_.size(); ++i)
    for (auto j : sets_[i])
      result.ranks.push_back(all_[j].rank);
  std::ranges::sort(result.ranks);
  result.made = *front(1).call;
  result.has_made = true;
  name_kind(result);
  return result;
}

/// The two sides of a transfer: the one whose size differs from its own earlier transfers is wrong.
cause transfer_cause(const wait_graph& graph, const waited_call& x) {
  auto& job = graph.job();
  auto deviates = [&](uint32_t rank, call_form form, uint32_t peer) {
    auto& calls = graph.records(rank)->calls;
    const rank_call* latest = nullptr;
    for (auto i = calls.size(); i-- > 0;) {
      if (calls[i].form != form || calls[i].group != x.call.group || calls[i].peer != peer)
        continue;
      if (calls[i].state != call_state::completed)
        latest = &calls[i];
      else if (latest != nullptr)
        return mismatch_of(job, calls[i], *latest).has_value();
    }
    return false;
  };
  cause result;
  const auto rank = x.waiting.front(), peer = x.blockers.front();
  auto& members = job.groups[x.call.group].members;
  const auto own = static_cast<uint32_t>(std::ranges::find(members, graph.ranks()[rank]) - members.begin());
  const bool sends = x.call.form == call_form::send;
  const bool self = deviates(rank, x.call.form, x.call.peer);
  const bool other = deviates(peer, sends ? call_form::receive : call_form::send, own);
  result.kind = x.mismatch;
  result.awaited = x.call;
  result.has_call = true;
  result.sure = self == other ? certainty::ambiguous : certainty::likely;
  if (self || !other)
    result.ranks.push_back(graph.ranks()[rank]);
  if (other || !self)
    result.ranks.push_back(graph.ranks()[peer]);
  std::ranges::sort(result.ranks);
  return result;
}

} // namespace

cause mismatch_cause(const wait_graph& graph, const waited_call& x) {
  if (x.call.form != call_form::collective)
    return transfer_cause(graph, x);
  return mismatch_judge{graph.job(), calls_of(graph, x)}.judge();
}

} // namespace ringmaster::diagnosis
