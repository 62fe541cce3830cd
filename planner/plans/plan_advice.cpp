#include "planner/plans/plan_advice.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace ringmaster::training {

std::optional<uint32_t> least_devices(const plan_question& asked, const std::function<bool(double)>& watch) {
  constexpr uint32_t devices_max = 65536, between = 256, powers = 17;
  uint32_t tried = 0;
  bool interrupted = false;
  auto fits = [&](uint32_t devices) {
    auto other = asked;
    other.devices = devices;
    if (other.filter.micro_batches.empty())
      other.filter.micro_batches = {1}; // no other takes less memory
    const bool found = any_plan(other, true);
    interrupted = watch && !watch(static_cast<double>(++tried) / (powers + between));
    return found;
  };
  for (uint32_t power = 1; power <= devices_max && !interrupted; power *= 2) {
    if (!fits(power))
      continue;
    const auto step = std::max(1u, power / 2 / between);
    for (auto less = power / 2 + step; less < power && !interrupted; less += step)
      if (fits(less))
        return less;
    return power;
  }
  return interrupted ? std::nullopt : std::optional{0u};
}

namespace {

/// Parts of the filter without which anything divides.
std::vector<std::string_view> filters_in_the_way(const plan_question& asked) {
  using part = std::pair<std::string_view, void (*)(plan_filter&)>;
  static constexpr std::array<part, 11> parts{part{"tensor", [](plan_filter& x) { x.tp = {}; }},
                                              {"context", [](plan_filter& x) { x.cp = {}; }},
                                              {"expert", [](plan_filter& x) { x.ep = {}; }},
                                              {"data", [](plan_filter& x) { x.dp = {}; }},
                                              {"pipeline", [](plan_filter& x) { x.pp = {}; }},
                                              {"chunks", [](plan_filter& x) { x.chunks = {}; }},
                                              {"micro-batch", [](plan_filter& x) { x.micro_batches.clear(); }},
                                              {"schedule", [](plan_filter& x) { x.only.clear(); }},
                                              {"exclude", [](plan_filter& x) { x.excluded.clear(); }},
                                              {"recompute", [](plan_filter& x) { x.recomputations.clear(); }},
                                              {"framework", [](plan_filter& x) { x.framework = {}; }}};
  std::vector<std::string_view> result;
  for (auto& [name, leave_out] : parts) {
    auto other = asked;
    leave_out(other.filter);
    if (any_plan(other, false))
      result.push_back(name);
  }
  return result;
}

} // namespace

near_questions near_questions_that_divide(const plan_question& asked) {
  constexpr size_t shown = 4;
  constexpr uint32_t tried = 256;
  near_questions result;
  result.filters = filters_in_the_way(asked);
  auto divides = [](const plan_question& x) { return any_plan(x, false); };
  for (uint32_t off = 1; off < tried && (result.devices.size() < shown || result.batches.size() < shown); ++off)
    for (bool less : {true, false}) {
      auto other = [&](uint32_t x) { return less ? (x > off ? x - off : 0) : x + off; };
      auto devices = asked, batch = asked;
      devices.devices = other(asked.devices);
      batch.global_batch = other(asked.global_batch);
      if (devices.devices > 0 && result.devices.size() < shown && divides(devices))
        result.devices.push_back(devices.devices);
      if (batch.global_batch > 0 && result.batches.size() < shown && divides(batch))
        result.batches.push_back(batch.global_batch);
    }
  std::ranges::sort(result.devices);
  std::ranges::sort(result.batches);
  return result;
}

namespace {

constexpr double worth_a_word = 0.99;

/// The best of another question, unless its search would be a long one, or is interrupted.
std::optional<double> best_seconds(const plan_question& other, double plans_a_shape,
                                   const std::function<bool(double)>& watch) {
  constexpr double plans_max = 400'000; // half a second each, about
  if (plans_a_shape * static_cast<double>(shapes_tried(other)) > plans_max)
    return std::nullopt;
  const auto plans = plan_transformer(other, 1, watch);
  if (plans.interrupted || plans.best.empty())
    return std::nullopt;
  return plans.best.front().cost.seconds;
}

double plans_a_shape(const plan_question& asked, const transformer_plans& found) {
  const auto shapes = shapes_tried(asked);
  ensure(shapes > 0, "what was found has a shape");
  return static_cast<double>(found.evaluated) / static_cast<double>(shapes);
}

} // namespace

fewer_devices faster_on_fewer(const plan_question& asked, const transformer_plans& found, double seconds,
                              const std::function<bool(double)>& watch) {
  fewer_devices result;
  ensure(found.best.empty() || seconds > 0, "the best plan takes time");
  auto divides_well = [](uint32_t x) { return std::has_single_bit(x) || (x % 3 == 0 && std::has_single_bit(x / 3)); };
  if (found.interrupted || found.best.empty() || divides_well(asked.devices))
    return result;
  auto limit = worth_a_word * std::min(seconds, found.best.front().cost.seconds);
  for (const auto power : {std::bit_floor(asked.devices), std::bit_floor(asked.devices / 3) * 3}) {
    auto other = asked;
    other.devices = power;
    if (const auto its = best_seconds(other, plans_a_shape(asked, found), watch); its && *its < limit) {
      limit = *its;
      result = {power, limit};
    }
  }
  return result;
}

near_batch faster_batch(const plan_question& asked, const transformer_plans& found, double seconds,
                        const std::function<bool(double)>& watch) {
  near_batch result;
  const auto tenth = std::max(1u, asked.global_batch / 10), thirds = asked.devices % 3 == 0 ? 3u : 1u;
  auto step = std::bit_floor(std::max(1u, tenth / thirds)) * thirds;
  if (asked.global_batch % step == 0) // a third away at most, one divides among more ranks
    step = 2 * (asked.global_batch & (~asked.global_batch + 1));
  if (found.interrupted || found.best.empty() || step > asked.global_batch)
    return result;
  auto limit = worth_a_word * std::min(seconds, found.best.front().cost.seconds) / asked.global_batch;
  for (const auto batch : {asked.global_batch / step * step, (asked.global_batch / step + 1) * step}) {
    auto other = asked;
    other.global_batch = batch;
    const auto its = batch > 0 ? best_seconds(other, plans_a_shape(asked, found), watch) : std::nullopt;
    if (its && *its / batch < limit) {
      limit = *its / batch;
      result = {batch, *its};
    }
  }
  return result;
}

domain_filling filling_of(const training_setting& how, const gpu_system& on) {
  const auto domain = static_cast<uint32_t>(on.devices_per_host);
  ensure(domain > 0, "a domain has devices");
  if (how.devices() <= domain)
    return {};
  uint32_t all = 1;
  const auto shard = how.shard_ranks > 0 ? how.sharers() * how.tp : 1;
  for (auto group : {how.tp, how.tp * how.cp, how.ep, shard})
    if (group <= domain)
      all = std::lcm(all, group);
  if (all > domain)
    return {0, true};
  return {domain % all == 0 ? 0 : domain / all * all, false};
}

} // namespace ringmaster::training
