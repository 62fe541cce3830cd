#include "diagnosis/findings/call_history.hpp"

#include "diagnosis/findings/call_match.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace ringmaster::diagnosis {

namespace {

constexpr size_t looked_back = 1500; ///< Calls in which steps are looked for.
constexpr size_t occasions = 9;      ///< Collectives whose arrival times are compared.

bool takes_part(const rank_call& x) {
  return x.form == call_form::collective || x.form == call_form::send || x.form == call_form::receive;
}

/// A rank's latest calls as numbers, equal for equal calls of different steps.
class call_steps {
public:
  call_steps(const job_records& job, const rank_records& rank) : job_(job), rank_(rank) {
    for (auto i = rank.calls.size(); i-- > 0 && index_.size() < looked_back;)
      if (takes_part(rank.calls[i]))
        index_.push_back(i);
    std::ranges::reverse(index_);
    for (auto i : index_)
      marks_.push_back(mark_of(rank.calls[i]));
    find_period();
  }

  /// None: no step was repeated.
  std::optional<step_deviation> deviation() const;
  std::optional<rank_call> next() const {
    return period_ != 0 && end_ == marks_.size() ? std::optional{numbered(end_ - period_, end_)} : std::nullopt;
  }

private:
  uint32_t mark_of(const rank_call& x) {
    auto shape = may_be_uneven(job_.texts.text(x.name)) ? 0 : x.shape;
    auto key = std::tuple{x.group, x.form, x.peer, x.name, shape, x.root};
    return known_.emplace(key, static_cast<uint32_t>(known_.size())).first->second;
  }
  void find_period();
  bool same(size_t made, size_t expected) const { // counted from the deviation
    return end_ + made < marks_.size() && expected < period_
           && marks_[end_ + made] == marks_[end_ - period_ + expected];
  }
  bool open(size_t made) const { return end_ + made >= marks_.size(); }
  fault_kind kind_of(bool& sure) const;
  const rank_call& call(size_t i) const { return rank_.calls[index_[i]]; }
  /// The call, with the number that it would have before call `before`.
  rank_call numbered(size_t i, size_t before) const {
    auto result = call(i);
    result.state = call_state::scheduled;
    result.created_ns = result.started_ns = result.completed_ns = 0;
    for (size_t j = 0; j < before; ++j)
      if (auto& x = call(j); x.group == result.group && x.form == result.form && x.peer == result.peer)
        result.sequence = x.sequence;
    ++result.sequence;
    return result;
  }

  const job_records& job_;
  const rank_records& rank_;
  std::vector<size_t> index_; ///< Of the compared calls in the rank's.
  std::vector<uint32_t> marks_;
  std::map<std::tuple<uint32_t, call_form, uint32_t, text_id, uint32_t, uint32_t>, uint32_t> known_;
  size_t period_ = 0, end_ = 0; ///< Calls of a step, and where the repetition ends.
};

/// The distance at which the most calls in a row equal those before them.
void call_steps::find_period() {
  size_t longest = 0;
  for (size_t period = 1; 2 * period <= marks_.size() + 1; ++period) {
    size_t run = 0;
    for (size_t i = period; i < marks_.size(); ++i) {
      run = marks_[i] == marks_[i - period] ? run + 1 : 0;
      if (run <= longest || run < std::min<size_t>(period, 4))
        continue;
      longest = run;
      period_ = period;
      end_ = i + 1;
    }
  }
}

fault_kind call_steps::kind_of(bool& sure) const {
  auto &made = call(end_), &expected = call(end_ - period_);
  const bool transfer = expected.form != call_form::collective;
  const auto left_out = transfer ? fault_kind::no_partner : fault_kind::never_called;
  // Two exchanged calls, or one left out? In steps of alternating calls both fit at first.
  size_t without = 0, exchanged = 0;
  while (same(without, without + 1))
    ++without;
  while (same(exchanged, exchanged == 0 ? 1 : exchanged == 1 ? 0 : exchanged))
    ++exchanged;
  if (exchanged >= 2 && exchanged >= without)
    return fault_kind::other_order;
  if (without != 0) {
    sure = !open(1);
    return left_out;
  }
  const bool same_call = made.form == expected.form && !mismatch_of(job_, made, expected);
  if (same_call && made.group != expected.group && (same(1, 1) || open(1)))
    return fault_kind::other_group;
  if (made.group == expected.group && made.form == expected.form)
    if (auto mismatch = mismatch_of(job_, expected, made); mismatch && (same(1, 1) || open(1) || same(1, 0)))
      return *mismatch;
  sure = false;
  for (size_t skipped = 2; skipped < std::min<size_t>(period_, 64); ++skipped)
    if (same(0, skipped) && (same(1, skipped + 1) || open(1)))
      return left_out;
  return made.group != expected.group && same_call ? fault_kind::other_group : fault_kind::other_collective;
}

std::optional<step_deviation> call_steps::deviation() const {
  if (period_ == 0 || end_ >= marks_.size() || marks_.size() - end_ > 2 * period_)
    return {};
  step_deviation result;
  result.at = index_[end_];
  result.kind = kind_of(result.sure);
  result.expected = numbered(end_ - period_, end_);
  return result;
}

int64_t median(std::vector<int64_t>& x) {
  auto middle = x.begin() + static_cast<ptrdiff_t>(x.size() / 2);
  std::ranges::nth_element(x, middle);
  return *middle;
}

} // namespace

const rank_call* find_call(const rank_records& rank, uint32_t group, uint64_t sequence) {
  for (auto i = rank.calls.size(); i-- > 0;) {
    auto& x = rank.calls[i];
    if (x.group == group && x.form == call_form::collective && x.sequence <= sequence)
      return x.sequence == sequence ? &x : nullptr;
  }
  return nullptr;
}

std::optional<step_deviation> deviation_of(const job_records& job, const rank_records& rank) {
  return call_steps{job, rank}.deviation();
}

std::optional<rank_call> next_expected(const job_records& job, const rank_records& rank) {
  return call_steps{job, rank}.next();
}

std::optional<lateness> lateness_of(const job_records& job, uint32_t rank, uint32_t group) {
  auto* own = job.find(rank);
  if (own == nullptr)
    return {};
  std::vector<int64_t> own_late, others_late;
  for (auto i = own->calls.size(); i-- > 0 && own_late.size() < occasions;) {
    auto& call = own->calls[i];
    if (call.group != group || call.form != call_form::collective || call.created_ns == 0)
      continue;
    std::vector<int64_t> arrivals;
    for (auto member : job.groups[group].members)
      if (auto* other = member == rank ? nullptr : job.find(member))
        if (auto* its = find_call(*other, group, call.sequence); its != nullptr && its->created_ns != 0)
          arrivals.push_back(its->created_ns);
    if (arrivals.empty())
      continue;
    const auto latest = std::ranges::max(arrivals);
    const auto middle = median(arrivals);
    own_late.push_back(call.created_ns - middle);
    others_late.push_back(latest - middle);
  }
  if (own_late.size() < 3)
    return {};
  return lateness{median(own_late), median(others_late)};
}

} // namespace ringmaster::diagnosis
