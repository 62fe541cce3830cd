#include "planner/plans/shape_search.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/plans/plan_shapes.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

constexpr size_t fsdp = 4, hsdp = 5; ///< As in shardings.

} // namespace

shape_search::shape_search(const plan_question& asked, found_plans& found)
  : m_(asked.trained), on_(asked.system), filter_(asked.filter), found_(found) {
  for (size_t i = 0; i < pipeline_schedules; ++i)
    for (size_t k = 0; k < shardings.size(); ++k)
      for (bool several : {false, true})
        taken_[several][i][k] = filter_.takes(static_cast<pipeline_schedule>(i), shardings[k], !several);
}

void shape_search::try_shape(const training_setting& shape) {
  how_ = shape;
  ensure(m_.heads % how_.tp == 0, "tensor-parallel ranks have the same number of heads");
  ensure(how_.global_batch % how_.dp == 0, "data-parallel ranks have the same number of samples");
  ensure(how_.tp * how_.cp * how_.dp % how_.ep == 0, "experts are divided among neighbours of a stage");
  ensure(how_.pp <= m_.layers, "there are no more stages than layers");
  for (auto micro_batch : divisors_of(how_.global_batch / how_.dp)) {
    if (!filter_.micro_batches.empty()
        && std::ranges::find(filter_.micro_batches, micro_batch) == filter_.micro_batches.end())
      continue;
    how_.micro_batch = micro_batch;
    ensure(how_.micro_batches() * how_.micro_batch * how_.dp == how_.global_batch, "micro-batches make the batch");
    for (auto again : {recomputation::none, recomputation::selective, recomputation::full}) {
      if (!takes(again))
        continue;
      how_.again = again;
      for (bool in_sequence : {false, true}) {
        const auto t = how_.tp;
        if ((in_sequence && t == 1) || (!in_sequence && t > 1 && how_.ep > 1))
          continue;
        if (in_sequence && m_.sequence / how_.cp % t != 0)
          continue;
        how_.sequence_parallel = in_sequence;
        try_schedules();
      }
    }
  }
}

bool shape_search::takes(recomputation again) const {
  return filter_.recomputations.empty() || std::ranges::count(filter_.recomputations, again) > 0;
}

bool shape_search::runs(uint32_t shard) const {
  if (filter_.framework == training_framework::any)
    return true;
  auto how = how_;
  how.shard_ranks = shard;
  return can_run(filter_.framework, how);
}

void shape_search::try_schedules() {
  using enum pipeline_schedule;
  how_.schedule = one_f_one_b;
  how_.chunks = 1;
  times_ = micro_batch_times_of(m_, on_, how_);
  const auto p = how_.pp, count = how_.micro_batches();
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
    if ((divides && layers % v == 0) || most % v == 0)
      try_hiding(interleaved_1f1b, v);
}

void shape_search::try_hiding(pipeline_schedule schedule, uint32_t chunks) {
  if (how_.ep == 1 || m_.experts.count == 0 || !is_asked_for(schedule, chunks)) {
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

void shape_search::try_sharding(pipeline_schedule schedule, uint32_t chunks) {
  if (!is_asked_for(schedule, chunks))
    return;
  how_.schedule = schedule;
  how_.chunks = chunks;
  if (!all_stages_have_layers(how_, m_.layers))
    return;
  ensure(how_.shard_ranks == 0 && how_.zero == 0, "each way of sharding starts without the one before");
  const auto group = how_.replicas();
  const auto& taken = taken_of(schedule);
  const bool alike = group == 1 && (taken[1] || taken[2] || taken[3]); // there is no other rank to share with
  for (uint32_t zero = 0; zero <= (group > 1 ? 3u : 0u); ++zero)
    if ((taken[zero] || alike) && (how_.pp == 1 || goes_with_pipelines(zero))) {
      how_.zero = zero;
      how_.overlapped = zero <= 1;
      if (runs(0))
        found_.note({how_, estimate_iteration(m_, on_, how_, times_)});
    }
  how_.zero = 0;
  if (how_.pp > 1 || group == 1)
    return;
  how_.overlapped = true;
  if (taken[fsdp] && runs(group))
    found_.note(sharded(group));
  const auto room = on_.devices_per_host / how_.tp;
  const auto domain = room >= 2 ? neighbours(group, std::min<double>(room, group)) : 1;
  if (domain == 1 || domain == group || !taken[hsdp] || !runs(domain))
    return;
  const auto in_one = sharded(domain);
  auto fewest = in_one; // of 1, 2, 4, ... domains in which it fits
  for (auto sharers = 2 * domain; !fits(fewest) && sharers < group && group % sharers == 0; sharers *= 2)
    fewest = sharded(sharers);
  found_.note(fits(fewest) ? fewest : in_one);
}

bool shape_search::goes_with_pipelines(uint32_t zero) const {
  return zero <= 1 || std::ranges::find(filter_.only, shardings[zero]) != filter_.only.end();
}

bool shape_search::is_asked_for(pipeline_schedule schedule, uint32_t chunks) const {
  return std::ranges::count(taken_of(schedule), true) > 0 && filter_.chunks.contains(chunks);
}

planned shape_search::sharded(uint32_t ranks) {
  ensure(how_.pp == 1 && ranks > 1 && how_.replicas() % ranks == 0, "replicas divide into groups that share weights");
  const auto usual = times_;
  const bool hid = how_.paired_part() > 0;
  how_.shard_ranks = ranks;
  if (hid && how_.ep > 1)
    times_ = micro_batch_times_of(m_, on_, how_);
  const planned result{how_, estimate_iteration(m_, on_, how_, times_)};
  times_ = usual;
  how_.shard_ranks = 0;
  return result;
}

bool shape_search::fits(const planned& x) const {
  return lack_of(x, on_).sum() == 0;
}

} // namespace ringmaster::training
