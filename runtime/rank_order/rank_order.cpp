#include "runtime/rank_order/rank_order.hpp"

#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/contributions.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>

namespace ringmaster {

namespace {

using rank_run = rank_sets::run;

/// Makes one rank's schedule, step by step.
class rewriting {
public:
  rewriting(const contributions& all, const plan_request& request, uint32_t rank)
    : all_(all), world_size_(request.world_size), rank_(rank), lanes_(all, rank), own_laid_(all.cuts().size()) {}

  caf::expected<schedule> run(const schedule& from) {
    for (size_t i = 0; i < from.steps.size(); ++i)
      lanes_.expect(i, from.steps[i]);
    RETURN_ERROR(lanes_.lay_out(from.scratch_count));
    result_.rounds = from.rounds;
    result_.scratch_count = lanes_.end();
    auto chain_begun = false;
    for (size_t i = 0; i < from.steps.size(); ++i) {
      const auto& x = from.steps[i];
      parts_.clear();
      rewrite(i, x);
      const auto followed = i + 1 < from.steps.size() && from.steps[i + 1].then;
      const auto chained = x.then || followed || !all_.completed(rank_, i).empty();
      chain_begun = chain_begun && x.then;
      for (auto& part : parts_) {
        part.then = chained && chain_begun;
        chain_begun = true;
        result_.steps.push_back(part);
      }
    }
    return std::move(result_);
  }

private:
  /// What comes in the step's place.
  void rewrite(size_t index, const step& x) {
    const auto moved = all_.moved(rank_, index);
    if (moved.empty())
      add_whole(x, 0, is_local(x) || x.what == action::send ? x.source.count : x.destination.count);
    if (x.what != action::reduce && x.what != action::fold)
      for (const auto& run : moved) {
        if (run.whole)
          add_whole(x, run.start, run.count);
        else if (!is_local(x))
          add_apart(x, run);
      }
    for (const auto& run : all_.completed(rank_, index))
      add_fold(x, run);
  }

  void add_whole(const step& x, uint64_t start, uint64_t count) {
    auto part = x;
    part.finish = false; // it was when it was folded
    for (auto* range : {&part.source, &part.destination})
      if (range->count != 0)
        *range = {range->where, range->offset + start, count};
    parts_.push_back(part);
  }

  void add_apart(const step& x, const contribution_run& run) {
    const auto sends = x.what == action::send;
    lanes_.for_each_segment(run, [&](size_t i) {
      for (auto ranks : all_.ranks_of(run))
        for_each_part(ranks, sends ? rank_ : x.peer, sends ? x.peer : rank_, [&](rank_run part) {
          step y{.what = sends ? action::send : action::recv, .round = x.round, .peer = x.peer};
          (sends ? y.source : y.destination) = sends && part.first == rank_ ? own(i) : lanes_.at(i, part);
          parts_.push_back(y);
        });
    });
  }

  void add_fold(const step& x, const contribution_run& run) {
    lanes_.for_each_segment(run, [&](size_t i) {
      if (!own_laid_[i])
        parts_.push_back({.what = action::copy,
                          .round = x.round,
                          .peer = rank_,
                          .source = own(i),
                          .destination = lanes_.at(i, {rank_, rank_ + 1})});
      own_laid_[i] = true;
      const auto start = x.destination.offset + run.start + (all_.cuts()[i] - run.element);
      parts_.push_back({.what = action::fold,
                        .round = x.round,
                        .peer = rank_,
                        .source = lanes_.at(i, {0, world_size_}),
                        .destination = {x.destination.where, start, lanes_.size(i)},
                        .finish = true});
    });
  }

  block_range own(size_t segment) const { return {buffer::input, all_.cuts()[segment], lanes_.size(segment)}; }

  const contributions& all_;
  uint32_t world_size_;
  uint32_t rank_;
  contribution_lanes lanes_;
  std::vector<bool> own_laid_; ///< By segment: the rank's own contribution has been copied to its lane.
  std::vector<step> parts_;    ///< What comes in the place of one step.
  schedule result_;
};

/// The latest contributions that were asked for. The ranks of a process ask for the same, one after the other.
class known_contributions {
public:
  using pointer = std::shared_ptr<const contributions>;

  caf::expected<pointer> of(proto::CollectiveKind kind, std::string_view algorithm_name, const plan_request& request) {
    std::lock_guard guard{mutex_};
    auto found = std::find_if(entries_.begin(), entries_.end(),
                              [&](auto& x) { return x.is(kind, algorithm_name, request); });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return found->found;
    }
    TRY(ranks, plan_all(kind, algorithm_name, request));
    TRY(walked, contributions::of(kind, request, *ranks));
    entries_.push_front({kind, std::string{algorithm_name}, request,
                         std::make_shared<const contributions>(std::move(*walked))});
    if (entries_.size() > entries_max)
      entries_.pop_back();
    return entries_.front().found;
  }

private:
  static constexpr size_t entries_max = 8;

  struct entry {
    proto::CollectiveKind kind;
    std::string algorithm;
    plan_request request;
    pointer found;

    bool is(proto::CollectiveKind other_kind, std::string_view name, const plan_request& x) const {
      return kind == other_kind && algorithm == name && request.world_size == x.world_size && request.count == x.count
             && request.root == x.root && request.counts == x.counts && request.chunk == x.chunk
             && request.hosts == x.hosts;
    }
  };

  std::mutex mutex_;
  std::list<entry> entries_; ///< The latest first.
};

} // namespace

bool order_matters(proto::CollectiveKind kind, proto::DataType type, gpu_sim::ReduceOp op) {
  return reduces(kind) && order_shows(type, op);
}

caf::expected<schedule> plan_in_rank_order(proto::CollectiveKind kind, std::string_view algorithm_name,
                                           const plan_request& request) {
  static known_contributions known;
  auto planned = plan(kind, algorithm_name, request);
  if (!planned || !reduces(kind) || request.world_size == 1)
    return planned;
  TRY(all, known.of(kind, algorithm_name, request));
  return rewriting{**all, request, request.rank}.run(*planned);
}

caf::expected<std::vector<schedule>> plan_all_in_rank_order(proto::CollectiveKind kind, std::string_view algorithm_name,
                                                            const plan_request& request) {
  auto ranks = plan_all(kind, algorithm_name, request);
  if (!ranks || !reduces(kind) || request.world_size == 1)
    return ranks;
  TRY(all, contributions::of(kind, request, *ranks));
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    TRY(rewritten, rewriting{*all, request, rank}.run((*ranks)[rank]));
    (*ranks)[rank] = std::move(*rewritten);
  }
  return ranks;
}

} // namespace ringmaster
