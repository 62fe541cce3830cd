#include "runtime/training/transformer/planner.hpp"

#include <algorithm>
#include <array>

namespace ringmaster::training {

namespace {

constexpr size_t too_large_max = 3;

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

/// Keeps the first `most` in order.
void keep(std::vector<planned>& all, const planned& x, size_t most) {
  if (all.size() == most && !faster(x, all.back()))
    return;
  all.insert(std::upper_bound(all.begin(), all.end(), x, faster), x);
  if (all.size() > most)
    all.pop_back();
}

class search {
public:
  search(const gpt& m, const gpu_system& on, uint32_t devices, uint32_t global_batch, size_t count)
    : m_(m), on_(on), devices_(devices), count_(count), room_(on.memory_bytes - on.reserved_bytes) {
    how_.global_batch = global_batch;
  }

  transformer_plans run() {
    const auto tensor_max = 2 * static_cast<uint32_t>(on_.devices_per_host);
    for (auto t : divisors_of(devices_))
      if (t <= tensor_max && m_.heads % t == 0)
        for (auto p : divisors_of(devices_ / t))
          if (m_.layers % p == 0 && how_.global_batch % (devices_ / t / p) == 0)
            try_shape({t, devices_ / t / p, p});
    std::erase_if(found_.too_large, [&](auto& x) { return !found_.best.empty() && !faster(x, found_.best.front()); });
    std::ranges::reverse(pareto_);
    found_.pareto = std::move(pareto_);
    return std::move(found_);
  }

private:
  void try_shape(mesh shape) {
    how_.shape = shape;
    for (auto micro_batch : divisors_of(how_.global_batch / shape.data)) {
      how_.micro_batch = micro_batch;
      for (auto again : {recomputation::none, recomputation::selective, recomputation::full})
        for (bool in_sequence : {false, true}) {
          if (in_sequence && shape.tensor == 1)
            continue;
          how_.again = again;
          how_.sequence_parallel = in_sequence;
          try_schedules();
        }
    }
  }

  void try_schedules() {
    using enum pipeline_schedule;
    layer_ = layer_times_of(m_, on_, how_);
    ends_ = end_times_of(m_, on_, how_);
    const auto p = how_.shape.pipeline, count = how_.micro_batches(), layers = m_.layers / p;
    try_zero(one_f_one_b, 1);
    if (p == 1)
      return;
    try_zero(all_forwards_first, 1);
    if (count >= p)
      try_zero(zb_h1, 1);
    if (count >= 2 * p - 1)
      try_zero(zb_h2, 1);
    if (layers % 2 == 0 && count >= 2 * p - 1)
      try_zero(zb_v, 2);
    if (p % 2 == 0 && count % 2 == 0 && count >= 2 * p)
      try_zero(dualpipe, 2);
    if (count % p == 0)
      for (uint32_t v = 2; v <= layers; ++v)
        if (layers % v == 0)
          try_zero(interleaved_1f1b, v);
  }

  void try_zero(pipeline_schedule schedule, uint32_t chunks) {
    how_.schedule = schedule;
    how_.chunks = chunks;
    for (uint32_t zero = 0; zero <= (how_.shape.data > 1 ? 3u : 0u); ++zero) {
      how_.zero = zero;
      note({how_, estimate_iteration(m_, on_, how_, layer_, ends_)});
    }
  }

  void note(const planned& x) {
    ++found_.evaluated;
    if (x.cost.memory_bytes > room_) {
      keep(found_.too_large, x, too_large_max);
      return;
    }
    ++found_.fitting;
    keep(found_.best, x, count_);
    note_pareto(x);
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

  const gpt& m_;
  const gpu_system& on_;
  uint32_t devices_;
  size_t count_;
  double room_;
  parallel_setting how_;
  layer_times layer_;
  end_times ends_;
  transformer_plans found_;
  std::vector<planned> pareto_;
};

} // namespace

transformer_plans plan_transformer(const gpt& m, const gpu_system& on, uint32_t devices, uint32_t global_batch,
                                   size_t count) {
  return search{m, on, devices, global_batch, count}.run();
}

} // namespace ringmaster::training
