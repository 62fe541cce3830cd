// From the graph of waits to the cause.
#include "diagnosis/findings/call_history.hpp"
#include "diagnosis/findings/circle_cause.hpp"
#include "diagnosis/findings/mismatch_cause.hpp"
#include "diagnosis/findings/next_checks.hpp"
#include "diagnosis/findings/stack_places.hpp"
#include "diagnosis/findings/wait_chain.hpp"
#include "diagnosis/findings/wait_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ringmaster::diagnosis {

namespace {

using reason = waited_call::reason;

constexpr int64_t lateness_min_ns = 20'000'000;
constexpr int64_t lateness_factor = 4, pause_factor = 3;

/// Ranks at the end of a way through the graph, and the call in which others wait for them.
struct candidate {
  std::vector<uint32_t> ranks; ///< Numbers in the graph, ascending.
  uint32_t call = 0;
  bool known = true; ///< False: the ranks have no record, so they may be innocent.
};

class hang_analysis {
public:
  explicit hang_analysis(const job_records& job) : job_(job), graph_(job) {}

  diagnosis_result run();

private:
  std::vector<candidate> candidates(bool with_weak) const;
  std::vector<candidate> inside_candidates() const;
  void sort(std::vector<candidate>& all, bool with_weak) const;
  void find_cause();
  void answer(std::vector<candidate> all, bool with_weak);
  void answer_circle(cause found);
  void answer_by_stacks();
  void add_ways_to_root(uint32_t call, bool with_weak);
  cause cause_of(const candidate& x) const;
  cause idle_cause(const candidate& x) const;
  cause kernel_cause(const candidate& x) const;
  bool has_died(uint32_t rank, std::string& text, bool& certain) const;
  const rank_note* note_of(uint32_t rank, rank_note::kind what) const;
  bool makes_progress(uint32_t rank, const waited_call& x, std::string& text) const;
  const waited_call& call_of(const candidate& x) const;
  bool is_slow(uint32_t rank, const waited_call& x, std::string& text) const;
  std::string last_seen(uint32_t rank) const;
  std::vector<uint32_t> global(const std::vector<uint32_t>& ranks) const;
  void add_evidence(const std::vector<uint32_t>& ranks, const cause& x);
  void add_doubts(const cause& x);

  const job_records& job_;
  wait_graph graph_;
  diagnosis_result result_;
};

std::vector<uint32_t> hang_analysis::global(const std::vector<uint32_t>& ranks) const {
  std::vector<uint32_t> result;
  for (auto rank : ranks)
    result.push_back(graph_.ranks()[rank]);
  return result;
}

std::vector<candidate> hang_analysis::candidates(bool with_weak) const {
  std::vector<candidate> result;
  for (uint32_t i = 0; i < graph_.calls().size(); ++i) {
    auto& x = graph_.calls()[i];
    if (x.is_weak && (!with_weak || graph_.waits(x.waiting.front(), false)))
      continue;
    if (x.why == reason::mismatch || x.why == reason::not_started || x.why == reason::unfinished) {
      result.push_back({x.blockers, i});
      continue;
    }
    std::vector<uint32_t> idle;
    for (auto rank : x.blockers)
      if (!graph_.waits(rank, with_weak))
        idle.push_back(rank);
    if (!idle.empty())
      result.push_back({std::move(idle), i});
    if (!x.suspects.empty()) {
      std::vector<uint32_t> dead;
      std::string text;
      bool certain = false;
      for (auto rank : x.suspects)
        if (has_died(rank, text, certain) && certain)
          dead.push_back(rank);
      result.push_back(dead.empty() ? candidate{x.suspects, i, false} : candidate{std::move(dead), i});
    }
  }
  return result;
}

std::vector<candidate> hang_analysis::inside_candidates() const {
  std::vector<candidate> result;
  for (uint32_t i = 0; i < graph_.calls().size(); ++i)
    if (auto& x = graph_.calls()[i]; x.why == reason::inside)
      result.push_back({x.waiting, i});
  return result;
}

/// The front of progress first: proof before suspicion, then the call in which ranks have waited longest.
void hang_analysis::sort(std::vector<candidate>& all, bool with_weak) const {
  std::vector<std::pair<size_t, size_t>> sizes; // ranks that wait, and the candidate's number
  for (size_t i = 0; i < all.size(); ++i)
    sizes.emplace_back(victims_of(graph_, all[i].ranks, all[i].call, with_weak).size(), i);
  std::ranges::sort(sizes, [&](auto& a, auto& b) {
    auto &x = all[a.second], &y = all[b.second];
    auto since = [&](auto& z) {
      auto ns = graph_.calls()[z.call].since_ns;
      return ns == 0 ? INT64_MAX : ns;
    };
    return std::tuple{!x.known, since(x), b.first, a.second} < std::tuple{!y.known, since(y), a.first, b.second};
  });
  std::vector<candidate> sorted;
  for (auto& [size, i] : sizes)
    sorted.push_back(std::move(all[i]));
  all = std::move(sorted);
}

const rank_note* hang_analysis::note_of(uint32_t rank, rank_note::kind what) const {
  auto* records = graph_.records(rank);
  if (records == nullptr)
    return nullptr;
  auto at = std::ranges::find(records->notes, what, &rank_note::what);
  return at == records->notes.end() ? nullptr : &*at;
}

bool hang_analysis::has_died(uint32_t rank, std::string& text, bool& certain) const {
  for (auto what : {rank_note::kind::died, rank_note::kind::lost})
    if (auto* note = note_of(rank, what)) {
      text = fmt::format("{} ({})", note->text, note->source);
      certain = what == rank_note::kind::died || graph_.records(rank)->calls.empty();
      return true;
    }
  auto* records = graph_.records(rank);
  certain = false;
  return records == nullptr || (!records->has_calls && records->calls.empty() && records->threads.empty());
}

/// Whether the rank made calls while the others waited, and has paused since for no longer than before.
bool hang_analysis::makes_progress(uint32_t rank, const waited_call& x, std::string& text) const {
  if (x.since_ns == 0)
    return false;
  int64_t last = x.since_ns, longest = 0;
  size_t made = 0;
  for (auto& call : graph_.records(rank)->calls)
    if (call.created_ns > x.since_ns) {
      longest = std::max(longest, call.created_ns - last);
      last = call.created_ns;
      ++made;
    }
  if (made < 2 || longest < lateness_min_ns || job_.latest_ns() - last > pause_factor * longest)
    return false;
  text = fmt::format("it has made {} calls since, up to {:.3g} s apart", made, static_cast<double>(longest) / 1e9);
  return true;
}

bool hang_analysis::is_slow(uint32_t rank, const waited_call& x, std::string& text) const {
  if (makes_progress(rank, x, text))
    return true;
  if (x.call.form != call_form::collective)
    return false;
  auto late = lateness_of(job_, graph_.ranks()[rank], x.call.group);
  if (!late || late->own_ns < lateness_min_ns || late->own_ns < lateness_factor * late->others_ns)
    return false;
  auto waited = x.since_ns == 0 ? 0 : job_.latest_ns() - x.since_ns;
  for (auto waiting : x.waiting)
    waited = std::max(waited, graph_.records(waiting)->waited_ns);
  if (waited > lateness_factor * late->own_ns)
    return false;
  text = fmt::format("it came to the calls before that {:.3g} s after the others",
                     static_cast<double>(late->own_ns) / 1e9);
  return true;
}

std::string hang_analysis::last_seen(uint32_t rank) const {
  auto* records = graph_.records(rank);
  if (records == nullptr || records->calls.empty())
    return {};
  auto& last = records->calls.back();
  auto text = "the last call that it made is " + job_.name_of_call(last);
  if (last.stack != 0)
    text += ", from " + job_.text_of(own_frames(job_, job_.stacks[last.stack], 1).front());
  return text;
}

/// The call that others wait for. A rank that has stopped blocks several; its earlier steps say which one is its next.
const waited_call& hang_analysis::call_of(const candidate& x) const {
  auto& first = graph_.calls()[x.call];
  auto* records = graph_.records(x.ranks.front());
  auto next = records == nullptr ? std::nullopt : next_expected(job_, *records);
  if (!next)
    return first;
  for (auto& call : graph_.calls())
    if (call.call.group == next->group && call.call.form == next->form && call.call.sequence == next->sequence
        && std::ranges::binary_search(call.blockers, x.ranks.front()))
      return call;
  return first;
}

cause hang_analysis::idle_cause(const candidate& x) const {
  auto& call = call_of(x);
  const auto rank = x.ranks.front();
  cause result;
  result.ranks = global(x.ranks);
  result.awaited = call.call;
  result.has_call = true;
  bool certain = false;
  if (has_died(rank, result.place, certain)) {
    result.kind = fault_kind::died;
    // With records of few ranks only, most of those without one are innocent.
    const bool few_records = !x.known && x.ranks.size() > job_.ranks.size();
    result.sure = certain ? certainty::certain : few_records ? certainty::ambiguous : certainty::likely;
    return result;
  }
  if (auto* note = note_of(rank, rank_note::kind::hung)) {
    result.kind = fault_kind::hung_in_kernel;
    result.place = fmt::format("{} ({})", note->text, note->source);
    return result;
  }
  auto stack = place_of(job_, *graph_.records(rank));
  const bool is_transfer = call.call.form == call_form::send || call.call.form == call_form::receive;
  result.kind = stack && stack->kind != fault_kind::never_called ? stack->kind
                : call.call.form == call_form::creation          ? fault_kind::communicator_creation
                : is_slow(rank, call, result.place)              ? fault_kind::slow
                : is_transfer                                    ? fault_kind::no_partner
                                                                 : fault_kind::never_called;
  if (result.kind == fault_kind::slow)
    result.sure = certainty::likely;
  else
    result.place = stack ? stack->text : last_seen(rank);
  return result;
}

cause hang_analysis::kernel_cause(const candidate& x) const {
  auto& call = graph_.calls()[x.call];
  cause result;
  result.kind = fault_kind::hung_in_kernel;
  result.awaited = call.call;
  result.has_call = true;
  result.ranks = global(x.ranks);
  result.sure = call.no_majority ? certainty::ambiguous : certainty::certain;
  if (call.why == reason::not_started)
    result.place = "its GPU has not started the call, and no earlier call is open there";
  if (call.why == reason::unfinished)
    result.place = "the call has completed on the other ranks";
  if (call.why != reason::inside)
    return result;
  std::vector<uint32_t> failed;
  bool is_proof = false;
  for (auto rank : x.ranks)
    for (auto what : {rank_note::kind::failed, rank_note::kind::hung, rank_note::kind::died})
      if (auto* note = note_of(rank, what)) {
        failed.push_back(graph_.ranks()[rank]);
        result.place = fmt::format("{} ({})", note->text, note->source);
        is_proof = what != rank_note::kind::failed;
        if (what == rank_note::kind::died)
          result.kind = fault_kind::died;
        break;
      }
  const bool stands_out = !failed.empty() && failed.size() * 2 <= x.ranks.size();
  result.sure = !stands_out ? certainty::ambiguous : is_proof ? certainty::certain : certainty::likely;
  if (stands_out) {
    result.ranks = std::move(failed);
  } else {
    result.kind = fault_kind::hung_in_kernel;
    result.place = "all of its ranks have called it, nothing differs, and no rank stands out";
  }
  return result;
}

cause hang_analysis::cause_of(const candidate& x) const {
  auto& call = graph_.calls()[x.call];
  auto result = call.why == reason::mismatch && x.known ? mismatch_cause(graph_, call)
                : call.why == reason::not_started || call.why == reason::unfinished || call.why == reason::inside
                  ? kernel_cause(x)
                  : idle_cause(x);
  result.waiting = victims_of(graph_, x.ranks, x.call, true).size();
  return result;
}

void hang_analysis::answer(std::vector<candidate> all, bool with_weak) {
  sort(all, with_weak);
  auto first = all.front();
  result_.root = cause_of(first);
  auto victims = victims_of(graph_, first.ranks, first.call, with_weak);
  std::set<uint32_t> accused{first.ranks.begin(), first.ranks.end()};
  for (size_t i = 1; i < all.size(); ++i) {
    auto& x = all[i];
    if (std::ranges::all_of(x.ranks, [&](auto rank) { return accused.contains(rank); }) || (first.known && !x.known))
      continue;
    auto other = cause_of(x);
    const bool same = other.kind == result_.root.kind
                      && (other.kind == fault_kind::died || graph_.calls()[x.call].why == reason::not_called);
    if (same) { // of one kind, such as all ranks of a host that died
      accused.insert(x.ranks.begin(), x.ranks.end());
      result_.root.ranks.insert(result_.root.ranks.end(), other.ranks.begin(), other.ranks.end());
      continue;
    }
    auto others_victims = victims_of(graph_, x.ranks, x.call, with_weak);
    if (!std::ranges::includes(victims, others_victims) && result_.others.size() < 4)
      result_.others.push_back(std::move(other));
  }
  auto& ranks = result_.root.ranks;
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  add_ways_to_root(first.call, with_weak);
}

/// Who waits for the root's ranks, directly and by others, in this call.
void hang_analysis::add_ways_to_root(uint32_t call, bool with_weak) {
  std::vector<uint32_t> numbers;
  for (auto rank : result_.root.ranks)
    numbers.push_back(graph_.number_of(rank));
  result_.root.waiting = victims_of(graph_, numbers, call, with_weak).size();
  result_.chain = chain_to(graph_, numbers, call, with_weak);
  add_evidence(numbers, result_.root);
}

void hang_analysis::answer_circle(cause found) {
  result_.root = std::move(found);
  uint32_t call = 0;
  for (uint32_t i = 0; i < graph_.calls().size(); ++i)
    if (auto& x = graph_.calls()[i].call; x.group == result_.root.awaited.group && x.form == call_form::collective
                                          && x.sequence == result_.root.awaited.sequence)
      call = i;
  add_ways_to_root(call, false);
}

/// No record of calls has an open one: stacks alone can say that ranks wait for others.
void hang_analysis::answer_by_stacks() {
  std::vector<uint32_t> creating, elsewhere;
  std::optional<stack_place> place;
  for (uint32_t rank = 0; rank < graph_.ranks().size(); ++rank)
    if (auto* records = graph_.records(rank)) {
      auto found = place_of(job_, *records);
      if (found && found->kind == fault_kind::communicator_creation)
        creating.push_back(rank);
      else if (found) {
        elsewhere.push_back(rank);
        place = found;
      }
    }
  if (creating.empty() || elsewhere.empty() || elsewhere.size() > creating.size())
    return;
  result_.root.kind = place->kind == fault_kind::never_called ? fault_kind::communicator_creation : place->kind;
  result_.root.ranks = global(elsewhere);
  result_.root.place = place->text;
  result_.root.sure = certainty::likely;
  result_.root.waiting = result_.ranks_waiting = creating.size();
}

void hang_analysis::add_evidence(const std::vector<uint32_t>& ranks, const cause& x) {
  constexpr size_t rows_max = 4;
  auto row_of = [&](uint32_t rank, bool is_cause) -> std::optional<evidence_row> {
    auto* records = graph_.records(rank);
    evidence_row row{graph_.ranks()[rank], {}, is_cause, false};
    if (records == nullptr || records->calls.empty())
      return is_cause ? std::optional{row} : std::nullopt;
    const auto& awaited = x.awaited;
    auto* call = awaited.form == call_form::collective ? find_call(*records, awaited.group, awaited.sequence) : nullptr;
    row.made = call != nullptr;
    row.call = call != nullptr ? *call : records->calls.back();
    return is_cause || call != nullptr ? std::optional{row} : std::nullopt;
  };
  for (auto rank : ranks)
    if (result_.evidence.size() < rows_max)
      if (auto row = row_of(rank, true))
        result_.evidence.push_back(*row);
  if (!x.has_call)
    return;
  size_t others = 0;
  for (auto member : job_.groups[x.awaited.group].members)
    if (auto rank = graph_.number_of(member); others < rows_max && std::ranges::find(ranks, rank) == ranks.end())
      if (auto row = row_of(rank, false)) {
        result_.evidence.push_back(*row);
        ++others;
      }
}

void hang_analysis::add_doubts(const cause& x) {
  std::vector<uint32_t> missing;
  size_t without_starts = 0;
  for (uint32_t rank = 0; rank < graph_.ranks().size(); ++rank)
    if (auto* records = graph_.records(rank); records == nullptr || !records->has_calls)
      missing.push_back(graph_.ranks()[rank]);
    else
      without_starts += !records->reports_starts;
  if (!missing.empty())
    result_.doubts.push_back(fmt::format("no record of the calls of {}", ranks_text(missing)));
  if (x.kind == fault_kind::died && x.sure != certainty::certain)
    result_.doubts.push_back("a missing record is no proof of a death: a rank that is stuck in shutting down, or that "
                             "could not write, leaves none either");
  if (x.kind == fault_kind::hung_in_kernel && without_starts != 0)
    result_.doubts.push_back("the records do not say which kernels have started (TORCH_NCCL_ENABLE_TIMING=1 does)");
  if (x.kind == fault_kind::slow)
    result_.doubts.push_back("it may also have stopped there: the records do not say for how long the job has hung");
  for (auto& other : result_.others)
    result_.doubts.push_back("other ranks wait for something else: " + sentence_of(job_, other));
}

void hang_analysis::find_cause() {
  auto is_proof = [](const std::vector<candidate>& all) { return std::ranges::any_of(all, &candidate::known); };
  for (bool with_weak : {true, false}) {
    auto all = candidates(with_weak);
    // A suspicion must not hide a rank that waits only for its own sends.
    if (with_weak && !all.empty() && !is_proof(all) && is_proof(candidates(false)))
      continue;
    if (!all.empty())
      return answer(std::move(all), with_weak);
  }
  if (auto circle = circle_cause(graph_))
    return answer_circle(std::move(*circle));
  if (auto all = inside_candidates(); !all.empty())
    return answer(std::move(all), true);
  answer_by_stacks();
}

diagnosis_result hang_analysis::run() {
  result_.ranks_known = job_.ranks.size();
  for (uint32_t rank = 0; rank < graph_.ranks().size(); ++rank)
    result_.ranks_waiting += graph_.waits(rank, true);
  find_cause();
  if (result_.root.kind != fault_kind::none) {
    add_doubts(result_.root);
    result_.checks = next_checks(job_, result_);
  }
  return std::move(result_);
}

} // namespace

diagnosis_result diagnose(const job_records& job) {
  return hang_analysis{job}.run();
}

} // namespace ringmaster::diagnosis
