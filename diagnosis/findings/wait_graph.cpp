#include "diagnosis/findings/wait_graph.hpp"

#include "diagnosis/findings/call_history.hpp"
#include "diagnosis/findings/call_match.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace ringmaster::diagnosis {

namespace {

constexpr size_t transfers_max = 64; ///< Open receives of a rank that are followed.

bool is_open(const rank_call& x) {
  return x.state != call_state::completed && x.form != call_form::batch && x.form != call_form::part;
}

bool is_transfer(const rank_call& x) {
  return x.form == call_form::send || x.form == call_form::receive;
}

/// What is known of a rank's arrival at a collective.
enum class arrival : uint8_t { called, not_called, unknown };

struct arrived_call {
  arrival how = arrival::unknown;
  const rank_call* call = nullptr; ///< Null although called: the ring has overwritten it, or only a status says so.
};

arrived_call arrival_of(const rank_records* rank, uint32_t group, uint64_t sequence) {
  if (rank == nullptr)
    return {};
  if (auto* call = find_call(*rank, group, sequence))
    return {arrival::called, call};
  for (auto& progress : rank->progress)
    if (progress.group == group && progress.enqueued >= 0)
      return {progress.enqueued >= static_cast<int64_t>(sequence) ? arrival::called : arrival::not_called, nullptr};
  if (!rank->has_calls)
    return {};
  bool any = false;
  for (auto i = rank->calls.size(); i-- > 0;)
    if (auto& x = rank->calls[i]; x.group == group && x.form == call_form::collective) {
      any = true;
      if (x.sequence > sequence) // the ring starts after it
        return {arrival::called, nullptr};
      break;
    }
  return {any || !rank->wrapped ? arrival::not_called : arrival::unknown, nullptr};
}

} // namespace

wait_graph::wait_graph(const job_records& job) : job_(job) {
  for (auto& rank : job.ranks)
    ranks_.push_back(rank.rank);
  for (auto& group : job.groups)
    ranks_.insert(ranks_.end(), group.members.begin(), group.members.end());
  std::ranges::sort(ranks_);
  ranks_.erase(std::ranges::unique(ranks_).begin(), ranks_.end());
  for (auto rank : ranks_)
    records_.push_back(job.find(rank));
  heads_.resize(ranks_.size());
  find_heads();
  for (auto& x : calls_)
    if (x.call.form == call_form::creation)
      judge_creation(x);
    else if (is_transfer(x.call))
      judge_transfer(x);
    else
      judge_collective(x);
}

uint32_t wait_graph::number_of(uint32_t global_rank) const {
  return static_cast<uint32_t>(std::ranges::lower_bound(ranks_, global_rank) - ranks_.begin());
}

bool wait_graph::waits(uint32_t rank, bool with_weak) const {
  return std::ranges::any_of(heads_[rank], [&](auto i) { return with_weak || !calls_[i].is_weak; });
}

void wait_graph::find_heads() {
  std::map<std::tuple<uint32_t, uint64_t, call_form>, uint32_t> shared;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (records_[rank] == nullptr)
      continue;
    size_t transfers = 0;
    bool in_collective = false;
    for (auto& call : records_[rank]->calls) {
      // After the first open collective only kernels that already run are waits of their own.
      if (!is_open(call) || (in_collective && call.state != call_state::started))
        continue;
      if (is_transfer(call)) {
        if (transfers++ >= transfers_max || in_collective)
          continue;
        heads_[rank].push_back(static_cast<uint32_t>(calls_.size()));
        auto& x = calls_.emplace_back();
        x.call = call;
        x.is_weak = call.form == call_form::send;
        x.waiting = {rank};
        x.since_ns = call.created_ns;
        continue;
      }
      in_collective = true;
      auto [at, added] = shared.emplace(std::tuple{call.group, call.sequence, call.form},
                                        static_cast<uint32_t>(calls_.size()));
      if (added)
        calls_.emplace_back().call = call;
      auto& x = calls_[at->second];
      heads_[rank].push_back(at->second);
      x.waiting.push_back(rank);
      if (call.created_ns != 0 && (x.since_ns == 0 || call.created_ns < x.since_ns))
        x.since_ns = call.created_ns;
    }
  }
}

void wait_graph::judge_collective(waited_call& x) {
  std::vector<uint32_t> arrived; // with a call
  std::vector<const rank_call*> their;
  for (auto member : job_.groups[x.call.group].members) {
    auto rank = number_of(member);
    auto found = arrival_of(records_[rank], x.call.group, x.call.sequence);
    if (found.how == arrival::unknown) {
      x.suspects.push_back(rank);
    } else if (found.how == arrival::not_called) {
      x.blockers.push_back(rank);
    } else if (found.call != nullptr) {
      arrived.push_back(rank);
      their.push_back(found.call);
    }
  }
  judge_arrived(x, arrived, their);
}

void wait_graph::judge_arrived(waited_call& x, const std::vector<uint32_t>& arrived,
                               const std::vector<const rank_call*>& their) {
  auto sets = matching_sets(job_, their);
  if (sets.size() > 1) {
    x.why = waited_call::reason::mismatch;
    x.no_majority = sets[0].size() == sets[1].size();
    x.call = *their[sets[0].front()];
    x.mismatch = *mismatch_of(job_, x.call, *their[sets[1].front()]);
    x.blockers.clear();
    for (size_t i = 1; i < sets.size(); ++i)
      for (auto j : sets[i])
        x.blockers.push_back(arrived[j]);
    std::ranges::sort(x.blockers);
    return;
  }
  std::vector<uint32_t> waiting = x.waiting;
  std::ranges::sort(waiting);
  size_t completed = 0, started = 0;
  std::vector<uint32_t> not_started, open;
  for (size_t i = 0; i < arrived.size(); ++i) {
    completed += their[i]->state == call_state::completed;
    started += their[i]->state == call_state::started;
    if (their[i]->state == call_state::completed)
      continue;
    open.push_back(arrived[i]);
    auto& calls = records_[arrived[i]]->calls;
    auto first = std::ranges::find_if(calls, [](auto& y) { return is_open(y) && y.form != call_form::send; });
    if (!std::ranges::binary_search(waiting, arrived[i])
        || (their[i]->state == call_state::scheduled && &*first != their[i]))
      x.blockers.push_back(arrived[i]); // an earlier call holds it up
    else if (their[i]->state == call_state::scheduled && records_[arrived[i]]->reports_starts)
      not_started.push_back(arrived[i]);
  }
  std::ranges::sort(x.blockers);
  if (!x.blockers.empty() || !x.suspects.empty())
    return;
  if (completed > 0 && !open.empty()) {
    x.why = waited_call::reason::unfinished;
    x.blockers = open;
    x.no_majority = open.size() * 2 > arrived.size();
  } else if (started > 0 && !not_started.empty()) {
    x.why = waited_call::reason::not_started;
    x.blockers = not_started;
    x.no_majority = not_started.size() >= started;
  } else {
    x.why = waited_call::reason::inside;
  }
}

void wait_graph::judge_creation(waited_call& x) {
  for (auto member : job_.groups[x.call.group].members) {
    auto rank = number_of(member);
    auto* its = records_[rank];
    const bool has_started = its != nullptr && std::ranges::any_of(its->calls, [&](auto& y) {
                               return y.form == call_form::creation && y.group == x.call.group;
                             });
    if (!has_started)
      (its == nullptr ? x.suspects : x.blockers).push_back(rank);
  }
  if (x.blockers.empty() && x.suspects.empty())
    x.why = waited_call::reason::inside;
}

/// The n-th open receive of a rank from another one needs the other's n-th open send to it, and the other way round.
void wait_graph::judge_transfer(waited_call& x) {
  auto& members = job_.groups[x.call.group].members;
  if (x.call.peer >= members.size())
    return;
  const auto rank = x.waiting.front(), peer = number_of(members[x.call.peer]);
  if (records_[peer] == nullptr || !records_[peer]->has_calls) {
    x.suspects.push_back(peer);
    return;
  }
  auto own_place = std::ranges::find(members, ranks_[rank]);
  const auto own_index = static_cast<uint32_t>(own_place - members.begin());
  const auto other_form = x.call.form == call_form::send ? call_form::receive : call_form::send;
  auto open_of = [&](const rank_records& of, call_form form, uint32_t with) {
    std::vector<const rank_call*> result;
    for (auto& y : of.calls)
      if (is_open(y) && y.group == x.call.group && y.form == form && y.peer == with)
        result.push_back(&y);
    return result;
  };
  auto own = open_of(*records_[rank], x.call.form, x.call.peer);
  auto other = open_of(*records_[peer], other_form, own_index);
  auto at = static_cast<size_t>(std::ranges::find_if(own, [&](auto* y) { return y->sequence == x.call.sequence; })
                                - own.begin());
  if (at >= other.size()) {
    x.why = waited_call::reason::no_partner;
    x.blockers.push_back(peer);
    return;
  }
  auto &mine = job_.shapes[x.call.shape], &its = job_.shapes[other[at]->shape];
  const auto sent = x.call.form == call_form::send ? mine : its, received = x.call.form == call_form::send ? its : mine;
  const auto elements_sent = std::max(sent.input_elements, sent.output_elements);
  const auto elements_received = std::max(received.output_elements, received.input_elements);
  if (elements_sent != 0 && elements_received != 0 && elements_sent != elements_received) {
    x.why = waited_call::reason::mismatch;
    x.mismatch = fault_kind::other_size;
    x.no_majority = true;
    x.blockers.push_back(peer);
    return;
  }
  auto first = std::ranges::find_if(records_[peer]->calls, is_open);
  const bool peer_is_here = is_transfer(*first) && first->group == x.call.group
                            && (&*first == other[at] || first->sequence == other[at]->sequence);
  if (peer_is_here)
    x.why = waited_call::reason::inside;
  else
    x.blockers.push_back(peer); // an earlier call holds it up
}

} // namespace ringmaster::diagnosis
