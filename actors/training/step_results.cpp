#include "actors/training/step_results.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringmaster::training {

void step_results::start(uint32_t ranks) {
  ensure(ranks > 0, "a step has ranks");
  ranks_.assign(ranks, {});
  bytes_peak_ = bytes_needed_ = 0;
  events_.clear();
  started_ = std::chrono::steady_clock::now();
}

bool step_results::is_possible(const rank_ended& x) const {
  const auto layers = job_->layers.size();
  return (x.strays_at == no_layer || x.strays_at < layers)
         && std::ranges::all_of(x.made, [&](auto& part) { return training::is_possible(part, layers); });
}

void step_results::add(const rank_ended& x) {
  ensure(x.rank < ranks_.size(), "a rank that finishes the step is one of it");
  bytes_peak_ = std::max(bytes_peak_, x.bytes_peak);
  bytes_needed_ = std::max(bytes_needed_, x.bytes_needed);
  ranks_[x.rank] = {x.losses, x.strays_at, x.made};
  events_.insert(events_.end(), x.events.begin(), x.events.end());
}

bool step_results::has_finished(uint32_t rank) const {
  ensure(rank < ranks_.size(), "the rank is one of the step's");
  return ranks_[rank].losses.has_value();
}

bool step_results::all_have_finished() const {
  return !ranks_.empty() && std::ranges::all_of(ranks_, [](auto& x) { return x.losses.has_value(); });
}

std::vector<bool> step_results::unfinished() const {
  std::vector<bool> result;
  for (auto& each : ranks_)
    result.push_back(!each.losses);
  return result;
}

caf::error step_results::check(uint64_t step, const caf::error& left_behind) {
  ensure(!ranks_.empty() && all_have_finished(), "a step is checked when all ranks have finished it");
  const auto bad = std::ranges::find_if(ranks_, [](auto& x) { return !std::isfinite(x.losses->loss); });
  if (bad != ranks_.end())
    return not_finite(step, static_cast<size_t>(bad - ranks_.begin()));
  return with_context(fmt::format("step {}", step), left_behind ? left_behind : check_model());
}

caf::error step_results::not_finite(uint64_t step, size_t rank) const {
  constexpr auto advice = "a lower learning rate, or inputs without infinities, would help";
  const auto source = std::ranges::min_element(ranks_, {}, &rank_result::strays_at);
  if (source->strays_at == no_layer)
    return make_error(errc::aborted,
                      fmt::format("the loss of rank {} in step {} is not a finite number, though all outputs of its "
                                  "layers are: {}",
                                  rank, step, advice));
  return make_error(errc::aborted,
                    fmt::format("the loss of rank {} in step {} is not a finite number: the first layer with such an "
                                "output is {}, {}, on rank {}; {}",
                                rank, step, source->strays_at, job_->layers[source->strays_at]->name(),
                                source - ranks_.begin(), advice));
}

caf::error step_results::check_model() {
  if (std::ranges::equal(ranks_, checked_, {}, &rank_result::made))
    return caf::none; // as in the step before
  checked_.clear();
  model_parts all{*job_};
  for (uint32_t i = 0; i < ranks_.size(); ++i)
    for (auto& part : ranks_[i].made)
      all.add(part, i);
  if (auto part = all.missing())
    return invalid(fmt::format("no rank has finished the whole of {}: update it, and finish it", text_of(*part)));
  for (auto& each : ranks_)
    checked_.push_back(each.made);
  return caf::none;
}

step_report step_results::report(uint64_t step, uint32_t attempts) const {
  ensure(std::ranges::equal(ranks_, checked_, {}, &rank_result::made),
         "the ranks of a step that counts have all of the model");
  loss_sums all; // in the order of ranks: the same bits each time
  for (auto& each : ranks_)
    all.add(*each.losses);
  const auto samples = static_cast<double>(std::max<uint64_t>(all.samples, 1));
  step_report result;
  result.step = step;
  result.loss = all.loss / samples;
  result.accuracy = static_cast<double>(all.right) / samples;
  result.ranks = static_cast<uint32_t>(ranks_.size());
  result.attempts = attempts;
  result.bytes_peak = bytes_peak_;
  result.bytes_needed = bytes_needed_;
  result.ended_at = std::chrono::steady_clock::now();
  result.seconds = std::chrono::duration<double>(result.ended_at - started_).count();
  return result;
}

std::vector<std::vector<kept_part>> step_results::take_made() {
  ensure(all_have_finished(), "a step that counts was finished by all ranks");
  std::vector<std::vector<kept_part>> result;
  for (auto& each : ranks_)
    result.push_back(std::move(each.made));
  ranks_.clear();
  return result;
}

std::vector<event> step_results::take_events() {
  auto result = std::exchange(events_, {});
  if (result.empty())
    return result;
  const auto first = std::ranges::min(result, {}, &event::start).start;
  for (auto& each : result)
    each.start -= first;
  std::ranges::stable_sort(result, {}, [](auto& x) { return x.start + x.duration; }); // they arrived rank by rank
  return result;
}

} // namespace ringmaster::training
