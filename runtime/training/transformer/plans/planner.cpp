#include "runtime/training/transformer/plans/planner.hpp"

#include "runtime/training/transformer/estimates/exchange_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster::training {

namespace {

constexpr size_t too_large_max = 3;
constexpr uint32_t context_max = 64, block_min = 256; ///< Ranks; positions of a block of keys.
constexpr double front_slowest = 3; ///< Times the fastest: what is slower is on no front that is shown.

std::vector<uint32_t> divisors_of(uint32_t x) {
  std::vector<uint32_t> small, large;
  for (uint32_t i = 1; i <= x / i; ++i)
    if (x % i == 0) {
      small.push_back(i);
      if (i != x / i)
        large.push_back(x / i);
    }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

bool faster(const planned& a, const planned& b) {
  return std::pair{a.cost.seconds, a.cost.memory_bytes} < std::pair{b.cost.seconds, b.cost.memory_bytes};
}

constexpr double nearly = 1e-9;

/// Twice the context's ranks with twice the samples in a micro-batch are the same work, and the same memory.
bool same(const planned& a, const planned& b) {
  return a.how.context != b.how.context && std::abs(a.cost.seconds / b.cost.seconds - 1) < nearly
         && std::abs(a.cost.memory_bytes / b.cost.memory_bytes - 1) < nearly;
}

/// Keeps the first `most` in order; of those that are the same, the one that was found first.
void keep(std::vector<planned>& all, const planned& x, size_t most) {
  if (all.size() == most && !faster(x, all.back()))
    return;
  // Those that are the same stand side by side.
  auto at_least = [&](double times) {
    return std::ranges::lower_bound(all, x.cost.seconds * times, {}, [](auto& y) { return y.cost.seconds; });
  };
  if (std::any_of(at_least(1 - 2 * nearly), at_least(1 + 2 * nearly), [&](auto& y) { return same(x, y); }))
    return;
  all.insert(std::upper_bound(all.begin(), all.end(), x, faster), x);
  if (all.size() > most)
    all.pop_back();
}

/// The sides of a world that divide model and samples.
std::vector<parallel_setting> shapes_of(const plan_question& asked) {
  auto& m = asked.trained;
  auto& filter = asked.filter;
  const auto tensor_max = static_cast<uint32_t>(std::max(8.0, std::min(16.0, asked.system.devices_per_host * 2)));
  std::vector<parallel_setting> result;
  for (auto t : divisors_of(asked.devices)) {
    if (t > tensor_max || m.heads % t != 0 || (m.key_value_heads % t != 0 && t % m.key_value_heads != 0)
        || !filter.tensor.contains(t))
      continue;
    for (auto c : divisors_of(asked.devices / t)) {
      const bool cut_finely = c > 1 && (m.sequence % (2 * c) != 0 || m.sequence / (2 * c) < block_min);
      if (c > context_max || cut_finely || !filter.context.contains(c))
        continue;
      for (auto p : divisors_of(asked.devices / t / c)) {
        const auto d = asked.devices / t / c / p;
        if (p > m.layers || asked.global_batch % d != 0 || !filter.pipeline.contains(p) || !filter.data.contains(d))
          continue;
        for (auto e : divisors_of(std::max(1u, m.experts.count))) {
          if (t * c * d % e != 0 || !filter.expert.contains(e))
            continue;
          parallel_setting how;
          how.shape = {t, d, p};
          how.context = c;
          how.expert = e;
          how.global_batch = asked.global_batch;
          how.computed_in = filter.computed_in;
          how.attention = filter.attention;
          how.gradient_bytes = filter.gradient_bytes;
          how.state_bytes = filter.state_bytes;
          how.offloads_states = filter.offloads_states;
          how.offloads_activations = filter.offloads_activations;
          result.push_back(how);
        }
      }
    }
  }
  return result;
}

class search {
  static constexpr size_t schedules = 7, fsdp = 4, hsdp = 5; ///< The latter as in shardings.

public:
  search(const plan_question& asked, size_t count)
    : m_(asked.trained), on_(asked.system), filter_(asked.filter), count_(count) {
    for (size_t i = 0; i < schedules; ++i)
      for (size_t k = 0; k < shardings.size(); ++k)
        taken_[i][k] = filter_.takes(static_cast<pipeline_schedule>(i), shardings[k]);
  }

  void try_shape(const parallel_setting& shape) {
    how_ = shape;
    for (auto micro_batch : divisors_of(how_.global_batch / how_.shape.data)) {
      if (!filter_.micro_batches.empty()
          && std::ranges::find(filter_.micro_batches, micro_batch) == filter_.micro_batches.end())
        continue;
      how_.micro_batch = micro_batch;
      for (auto again : {recomputation::none, recomputation::selective, recomputation::full}) {
        if (!filter_.recomputations.empty()
            && std::ranges::find(filter_.recomputations, again) == filter_.recomputations.end())
          continue;
        if (again == recomputation::selective && m_.layer_norms && filter_.attention == attention_kernel::flash)
          continue; // it would save nothing
        how_.again = again;
        for (bool in_sequence : {false, true}) {
          const auto t = how_.shape.tensor;
          if ((in_sequence && t == 1) || (!in_sequence && t > 1 && how_.expert > 1))
            continue;
          how_.sequence_parallel = in_sequence;
          try_schedules();
        }
      }
    }
  }

  const transformer_plans& found() const { return found_; }

  transformer_plans take() {
    std::erase_if(found_.too_large, [&](auto& x) { return !found_.best.empty() && !faster(x, found_.best.front()); });
    if (!found_.best.empty())
      found_.smallest.clear();
    for (auto& each : families_)
      if (!each.empty() && found_.best.size() == count_ && faster(found_.best.back(), each.front()))
        keep(found_.others, each.front(), families_.size());
    std::ranges::reverse(pareto_);
    if (!pareto_.empty())
      std::erase_if(pareto_, [&](auto& x) { return x.cost.seconds > front_slowest * pareto_.front().cost.seconds; });
    found_.pareto = std::move(pareto_);
    return std::move(found_);
  }

private:
  void try_schedules() {
    using enum pipeline_schedule;
    how_.schedule = one_f_one_b;
    how_.chunks = 1;
    times_ = micro_batch_times_of(m_, on_, how_);
    const auto p = how_.shape.pipeline, count = how_.micro_batches();
    const bool divides = m_.layers % p == 0;
    const auto layers = m_.layers / p;
    try_sharding(one_f_one_b, 1);
    if (p == 1)
      return;
    if (count > p) // else 1F1B is the same
      try_sharding(all_forwards_first, 1);
    if (count >= p)
      try_sharding(zb_h1, 1);
    if (count >= 2 * p - 1)
      try_sharding(zb_h2, 1);
    if (m_.layers + 2 >= 2 * p && count >= 2 * p - 1)
      try_sharding(zb_v, 2);
    if (p % 2 == 0 && count % 2 == 0 && count >= 2 * p)
      try_hiding(dualpipe, 2);
    if (count % p != 0)
      return;
    const auto most = (m_.layers + 1 + p) / p;
    for (uint32_t v = 2; v <= most; ++v)
      if ((divides && layers % v == 0) || (!divides && most % v == 0))
        try_hiding(interleaved_1f1b, v);
  }

  /// Experts' positions move behind other micro-batches' work there.
  void try_hiding(pipeline_schedule schedule, uint32_t chunks) {
    if (how_.expert == 1 || m_.experts.count == 0 || !is_asked_for(schedule, chunks)) {
      try_sharding(schedule, chunks);
      return;
    }
    const auto usual = times_;
    how_.schedule = schedule;
    how_.chunks = chunks;
    times_ = micro_batch_times_of(m_, on_, how_);
    try_sharding(schedule, chunks);
    times_ = usual;
  }

  void try_sharding(pipeline_schedule schedule, uint32_t chunks) {
    if (!is_asked_for(schedule, chunks))
      return;
    how_.schedule = schedule;
    how_.chunks = chunks;
    if (!all_have_layers())
      return;
    const auto group = how_.shape.data * how_.context;
    const auto& taken = taken_of(schedule);
    for (uint32_t zero = 0; zero <= (group > 1 ? 3u : 0u); ++zero)
      if (taken[zero] && (how_.shape.pipeline == 1 || goes_with_pipelines(zero))) {
        how_.zero = zero;
        how_.overlapped = zero <= 1;
        note();
      }
    how_.zero = 0;
    if (how_.shape.pipeline > 1 || group == 1)
      return;
    how_.overlapped = true;
    if (taken[fsdp])
      try_shard(group);
    const auto room = on_.devices_per_host / how_.shape.tensor;
    const auto domain = room >= 2 ? neighbours(group, std::min<double>(room, group)) : 1;
    if (domain > 1 && domain < group && taken[hsdp])
      try_shard(domain);
  }

  /// Each micro-batch's gradients scattered, and weights gathered, on all stages: no software trains so by itself
  /// (DeepSpeed refuses it), and the closed form is rough there. Who names a stage gets it.
  bool goes_with_pipelines(uint32_t zero) const {
    return zero <= 1 || std::ranges::find(filter_.only, shardings[zero]) != filter_.only.end();
  }

  bool is_asked_for(pipeline_schedule schedule, uint32_t chunks) const {
    return std::ranges::count(taken_of(schedule), true) > 0 && filter_.chunks.contains(chunks);
  }

  const std::array<bool, shardings.size()>& taken_of(pipeline_schedule schedule) const {
    return taken_[static_cast<size_t>(schedule)];
  }

  /// Nothing hides dispatch there.
  void try_shard(uint32_t ranks) {
    const auto usual = times_;
    const bool hid = how_.hides_dispatch();
    how_.shard = ranks;
    if (hid && how_.expert > 1)
      times_ = micro_batch_times_of(m_, on_, how_);
    note();
    times_ = usual;
    how_.shard = 0;
  }

  /// No chunk of a stage is empty.
  bool all_have_layers() const {
    const auto places = how_.shape.pipeline * how_.chunks_of_stage(), each = how_.chunk_layers(m_.layers);
    return (places - 1) * each < m_.layers + (places * each == m_.layers ? 0 : 2);
  }

  void note() {
    const planned x{how_, estimate_iteration(m_, on_, how_, times_)};
    ++found_.evaluated;
    if (!std::isfinite(x.cost.seconds) || !std::isfinite(x.cost.memory_bytes)) {
      ++found_.endless;
      return;
    }
    if (const auto lack = lack_of(x, on_); lack.sum() > 0) {
      keep(found_.too_large, x, too_large_max);
      if (found_.smallest.empty() || lack.sum() < lack_of(found_.smallest.front(), on_).sum())
        found_.smallest = {x};
      return;
    }
    ++found_.fitting;
    keep(found_.best, x, count_);
    keep(families_[family_of(how_)], x, 1);
    note_pareto(x);
  }

  static size_t family_of(const parallel_setting& how) {
    return how.shard == 0 ? static_cast<size_t>(how.schedule) : how.shard == how.replicas() ? schedules : schedules + 1;
  }

  /// pareto_ is by memory, ascending; so by time, descending.
  void note_pareto(const planned& x) {
    auto at = std::partition_point(pareto_.begin(), pareto_.end(),
                                   [&](auto& y) { return y.cost.memory_bytes <= x.cost.memory_bytes; });
    if (at != pareto_.begin() && std::prev(at)->cost.seconds <= x.cost.seconds)
      return;
    at = std::partition_point(pareto_.begin(), pareto_.end(),
                              [&](auto& y) { return y.cost.memory_bytes < x.cost.memory_bytes; });
    auto end = std::find_if(at, pareto_.end(), [&](auto& y) { return y.cost.seconds < x.cost.seconds; });
    pareto_.insert(pareto_.erase(at, end), x);
  }

  const language_model& m_;
  const gpu_system& on_;
  const plan_filter& filter_;
  size_t count_;
  std::array<std::array<bool, shardings.size()>, schedules> taken_{}; ///< By the filter.
  std::array<std::vector<planned>, schedules + 2> families_; ///< The fastest of each schedule, of FSDP and of HSDP.
  parallel_setting how_;
  micro_batch_times times_;
  transformer_plans found_;
  std::vector<planned> pareto_;
};

} // namespace

memory_lack lack_of(const planned& x, const gpu_system& on) {
  return {std::max(0.0, x.cost.memory_bytes - on.room_bytes()),
          std::max(0.0, x.cost.host_bytes - on.host_memory_bytes)};
}

transformer_plans plan_transformer(const plan_question& asked, size_t count, const std::function<bool(double)>& watch) {
  const auto shapes = shapes_of(asked);
  search found{asked, count};
  bool interrupted = false;
  for (size_t i = 0; i < shapes.size() && !interrupted; ++i) {
    found.try_shape(shapes[i]);
    interrupted = watch && !watch(static_cast<double>(i + 1) / static_cast<double>(shapes.size()));
  }
  auto result = found.take();
  result.interrupted = interrupted;
  return result;
}

size_t shapes_tried(const plan_question& asked) {
  return shapes_of(asked).size();
}

bool any_plan(const plan_question& asked, bool that_fits) {
  search all{asked, 1};
  for (auto& shape : shapes_of(asked)) {
    all.try_shape(shape);
    if ((that_fits ? all.found().fitting : all.found().evaluated) > 0)
      return true;
  }
  return false;
}

} // namespace ringmaster::training
