#include "planner/failures/failure_findings.hpp"

#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

/// `restart` assumes that a spare is always available, so it is no real choice. `wait` always is one.
const recovery_finding& best_of(const std::vector<recovery_finding>& all) {
  ensure(!all.empty(), "there is a way to recover");
  const recovery_finding* best = nullptr;
  for (auto& each : all)
    if (each.outcome.how != recovery::restart && (best == nullptr || each.outcome.goodput > best->outcome.goodput))
      best = &each;
  return best != nullptr ? *best : all.front();
}

std::vector<recovery_finding> recoveries_of(const failure_answer& x, bool shrink) {
  std::vector<recovery_finding> result;
  for (auto& outcome : x.outcomes)
    if (outcome.how != recovery::shrink || shrink)
      result.push_back({outcome, {}});
  return result;
}

/// GPU-hours for an hour of training that is kept.
double price_of(const failure_question& asked, double goodput) {
  const auto each = std::min(asked.gpus_per_host, asked.gpus);
  return (asked.gpus + static_cast<double>(asked.spares) * each) / std::max(goodput, 1e-9);
}

std::optional<spares_advice> cheaper_spares(const failure_question& asked, double goodput, bool shrink) {
  constexpr uint32_t more_max = 64;
  constexpr double worth_it = 0.99;
  const auto now = price_of(asked, goodput);
  std::optional<spares_advice> best;
  for (uint32_t more = 1; more <= more_max; ++more) {
    auto with = asked;
    with.spares += more;
    const auto kept = best_of(recoveries_of(answer_of(with), shrink)).outcome.goodput;
    const auto part = price_of(with, kept) / now;
    if (part < (best ? best->gpu_hours : worth_it))
      best = spares_advice{with.spares, kept, part};
  }
  ensure(!best || (best->spares > asked.spares && best->gpu_hours < 1), "cheaper spares are more hosts for less");
  return best;
}

} // namespace

const recovery_finding& failure_findings::best() const {
  return best_of(recoveries);
}

caf::expected<failure_findings> find_failures(const failure_question& asked, bool shrink, uint32_t plays,
                                              double life_shape) {
  failure_findings result{asked, answer_of(asked), {}, {}};
  result.recoveries = recoveries_of(result.answer, shrink);
  result.cheaper = cheaper_spares(asked, result.best_goodput(), shrink);
  for (auto& each : result.recoveries) {
    if (plays == 0)
      break;
    TRY(played, play_runs(asked, each.outcome.how, each.outcome.interval_s, plays, life_shape));
    each.played = *played;
  }
  return result;
}

} // namespace ringmaster::training
