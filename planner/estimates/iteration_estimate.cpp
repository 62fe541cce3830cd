// Where the terms come from, and how well they predict: docs/cost_models.md.
#include "planner/estimates/iteration_estimate.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/sharded_times.hpp"
#include "planner/estimates/stage_layers.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

/// A stage's seconds for a micro-batch.
struct stage_times {
  double forward = 0, backward = 0, by_weight = 0, ends = 0;
  exchange_parts exposed{}, hidden{};

  double sum() const { return forward + backward + ends; }
};

void add(exchange_parts& to, const exchange_parts& x, double count) {
  to.tensor += x.tensor * count;
  to.context += x.context * count;
  to.experts += x.experts * count;
}

void add(stage_times& to, const layer_times& x, double count) {
  to.forward += x.forward * count;
  to.backward += x.backward * count;
  to.by_weight += x.by_weight * count;
  add(to.exposed, x.exposed, count);
  add(to.hidden, x.hidden, count);
}

bool splits_backward(const training_setting& how) {
  return how.schedule == pipeline_schedule::zb_h1 || how.schedule == pipeline_schedule::zb_h2
         || how.schedule == pipeline_schedule::zb_v;
}

/// Between layers tensor-parallel ranks have a part of the positions each: what they gather for a backward is gathered
/// again for its postponed half, the input beside the gradient. Of a layer's collectives in one direction.
constexpr double gathered_again = 0.75;

/// How often a micro-batch's layers communicate what they do in one direction: recomputation repeats it.
double ways_of(const training_setting& how) {
  return how.again == recomputation::full ? 3 : 2;
}

/// Without embedding and loss.
stage_times times_of_layers(const stage_layers& has, const micro_batch_times& times) {
  stage_times x;
  add(x, times.dense, has.dense - has.windowed_dense);
  add(x, times.sparse, has.experts - has.windowed_experts);
  if (has.windowed_dense > 0)
    add(x, times.windowed_dense, has.windowed_dense);
  if (has.windowed_experts > 0)
    add(x, times.windowed_sparse, has.windowed_experts);
  return x;
}

stage_times times_of_stage(const stage_layers& has, const training_setting& how, const micro_batch_times& times) {
  auto x = times_of_layers(has, times);
  if (splits_backward(how) && how.sequence_parallel) {
    const auto again = gathered_again * x.exposed.tensor;
    x.backward += again;
    x.by_weight += again;
    x.exposed.tensor += again / ways_of(how); // the mean
  }
  x.ends = (has.embedding ? times.ends.embedding : 0) + (has.logits ? times.ends.loss : 0);
  return x;
}

/// The stage that takes the longest, and the one that does without the embedding and the logits.
struct slowest_stages {
  stage_times with_ends, layers;
  uint32_t index = 0;               ///< Of the first of these.
  double forward = 0, backward = 0; ///< Of one stage each, with its ends' part.
};

slowest_stages slowest_stages_of(const language_model& m, const training_setting& how, const micro_batch_times& times) {
  slowest_stages slowest;
  for (auto index : stages_that_count(m, how)) {
    auto x = times_of_stage(stage_layers_of(m, how, index), how, times);
    x.ends /= how.copies(); // DualPipe's: each end is a rank's for half of the micro-batches
    slowest.forward = std::max(slowest.forward, x.forward);
    slowest.backward = std::max(slowest.backward, x.backward + x.ends);
    if (x.sum() > slowest.with_ends.sum()) {
      slowest.with_ends = x;
      slowest.index = index;
    }
    if (x.forward + x.backward > slowest.layers.forward + slowest.layers.backward)
      slowest.layers = x;
  }
  ensure(slowest.index < how.pp, "the slowest stage is one of the pipeline");
  return slowest;
}

/// How much longer the slowest stage works than the mean of all stages, for a micro-batch, without collectives.
double imbalance_of(const training_setting& how, const stage_times& slowest, const micro_batch_times& times) {
  const auto work = slowest.sum() - ways_of(how) * slowest.exposed.sum();
  return std::max(0.0, work - (times.whole_model - ways_of(how) * times.whole_exposed) / how.pp);
}

/// ZB-H1 and ZB-H2: stage r postpones r times this number of weight halves. 0: any other schedule.
uint32_t left_behind(const training_setting& how) {
  return how.schedule == pipeline_schedule::zb_h1 ? 1 : how.schedule == pipeline_schedule::zb_h2 ? 2 : 0;
}

/// A hop between stages: seconds, and those for which the receiver is stalled.
struct hop_times {
  double whole = 0, exposed = 0;
  double received = 0; ///< Hops to the slowest rank for a micro-batch.
};

hop_times hop_times_of(const language_model& m, const gpu_system& on, const training_setting& how,
                       const micro_batch_times& times, const slowest_stages& slowest) {
  const auto p = how.pp;
  if (p == 1)
    return {};
  const auto whole = hop_time(m, on, how), exposed = exposed_hop_time(whole, times.whole_model, on, how);
  // Forward and backward of each chunk; what goes in and out at the model's ends comes from no stage.
  double received = (how.turns_around() ? 1.0 : 2.0) * how.chunks_of_stage();
  // A stage at an end, where it is slower by that than the others, which receive both ways. (In 1F1B it waits for
  // them.)
  if (left_behind(how) > 0 && exposed > 0 && (slowest.index == 0 || slowest.index + 1 == p)) {
    const auto slower = slowest.with_ends.sum() - slowest.layers.forward - slowest.layers.backward;
    received -= std::min(1.0, slower / exposed);
  }
  return {whole, exposed, received};
}

/// Where a rank has both ends of the pipeline, these are its own work for all micro-batches, `extra` seconds; that time
/// the others have to spare, though they receive twice as often. What the rank waits then: until the others' bubble is
/// over, or what its own order of steps leaves between them, in which the embedding's gradient is at hand. As the
/// simulator finds them, for stages of F, I and W seconds (a chunk's in ZB-V).
double bubble_beside_ends(const training_setting& how, const slowest_stages& slowest, const hop_times& hop,
                          const micro_batch_times& times) {
  const auto by_embedding = times.ends.embedding_backward();
  const double p = how.pp, count = how.micro_batches();
  const double halves = how.schedule == pipeline_schedule::zb_v ? 2 : 1;
  const auto &stage = slowest.layers, &end = slowest.with_ends;
  const auto extra = count * (end.sum() - stage.forward - stage.backward - hop.received * hop.exposed);
  const auto forward = stage.forward / halves, by_weight = stage.by_weight / halves,
             by_input = stage.backward / halves - by_weight, postponed = std::max(0.0, by_input - by_weight),
             between = postponed - by_embedding + hop.exposed;
  const auto hops = 2 * (p - 1) * hop.whole;
  if (how.schedule == pipeline_schedule::zb_v) {
    const auto bubble = (p - 1) * std::max({forward, by_input, 2 * postponed})
                        + (p - 2) * std::max(0.0, forward - by_input);
    const auto own = std::max((p - 2) * by_weight, (p - 1) * between - by_weight - hop.exposed);
    return std::max({0.0, bubble + end.ends - extra + hops, own});
  }
  // DualPipe is filled and drained through the other stages, which may be less each
  const auto layers = times.whole_model - times.ends.embedding - times.ends.loss, slow = stage.forward + stage.backward;
  const auto ways = (p / 2 - 1) * std::min(1.0, (layers - slow) / (p - 1) / slow);
  const auto bubble = ways * (2 * forward + by_input - by_weight) + std::max(0.0, ways * by_input - p / 2 * forward);
  const auto own = std::max(ways * between, bubble - 2 * (p - 2) * end.ends);
  return std::max({0.0, bubble + 2 * end.ends - extra + hops, own});
}

/// How much longer (or shorter) 1F1B takes than if all stages were as slow as the slowest one. From its first backward
/// to its last a stage never waits. It still has forwards to run for the micro-batches after its warm-up, which covers
/// one micro-batch for each stage from it to the end.
double unevenness(const language_model& m, const training_setting& how, const micro_batch_times& times,
                  const stage_times& slowest) {
  const auto p = how.pp;
  const double count = how.micro_batches();
  double longest = 0;
  auto add_path = [&](uint32_t stage) {
    const auto x = times_of_stage(stage_layers_of(m, how, stage), how, times);
    const auto forwards = std::max(0.0, count - (p - stage));
    longest = std::max(longest, (count - 1) * (x.backward + x.ends) + forwards * x.forward);
  };
  for (auto stage : stages_that_count(m, how))
    add_path(stage);
  for (auto from_end : {2u, 3u}) // of stages that are alike the last one waits least
    if (p > from_end)
      add_path(p - from_end);
  return longest - (count - 1) * slowest.sum();
}

/// Of ZB-H1 and ZB-H2, from the end of the last stage on: the I of its last micro-batch goes back through the stages,
/// and stage r still has its postponed weight halves after its own I. The last stage has the same number of its own W,
/// which may be shorter if it has few layers beside the logits.
double split_drain(const training_setting& how, const slowest_stages& slowest) {
  const double p = how.pp, each = left_behind(how);
  const auto& stage = slowest.layers;
  const auto by_weight = stage.by_weight, by_input = stage.backward - by_weight;
  const auto at_end = slowest.index + 1 == how.pp ? slowest.with_ends.by_weight : by_weight;
  const auto of_last = each * (p - 1) * at_end, of_next = by_input + each * (p - 2) * by_weight;
  return std::max({0.0, (p - 1) * by_input - of_last, of_next - of_last});
}

/// Seconds of filling and draining, beside hops; F, I and W are the stage's forward and its backward's halves. ZB-H2
/// starts its ranks one after the other.
/// `plain`: what all other stages take together, which may be less each. Chunks are filled and drained through the
/// first ones and the last ones of stages: places that do nothing are all in the very last one.
double bubble_of(const language_model& m, const training_setting& how, const slowest_stages& slowest, double plain) {
  const double p = how.pp;
  const auto& stage = slowest.layers;
  const auto others = std::min(p - 1, plain / (stage.forward + stage.backward)); // in such stages
  switch (how.schedule) {
    case pipeline_schedule::interleaved_1f1b: {
      const double v = how.chunks, places = v * how.chunk_layers(m.layers);
      const auto idle = std::max(0.0, p * places - m.layers - 2) * (stage.forward + stage.backward) / places;
      return std::max(0.0, plain / v - (1 - 1 / v) * idle);
    }
    case pipeline_schedule::zb_h1:
    case pipeline_schedule::zb_h2: return others * stage.forward + others / (p - 1) * split_drain(how, slowest);
    case pipeline_schedule::all_forwards_first: // each way waits for its own slowest stage
      return plain + (how.micro_batches() - 1) * (slowest.forward + slowest.backward - slowest.with_ends.sum());
    default: return plain;
  }
}

/// How often the gradients' all_reduce, of two halves, is paid: ZeRO 2 scatters each micro-batch's gradients, ZeRO 3
/// gathers the weights for each forward and backward, too.
double gradient_exchanges(const training_setting& how) {
  const double m = how.micro_batches();
  return how.zero == 2 ? (m + 1) / 2 : how.zero == 3 ? 3 * m / 2 : 1;
}

/// Gradients, and the weights that shards of the optimizer's states make, of a step. Some of it is hidden by a
/// micro-batch's work on a stage, `body` seconds.
sharded_times shared_times_of(const gpu_system& on, const training_setting& how, const rank_parameters& parameters,
                              double body) {
  const auto once = all_reduce_time(how.copies() * how.reduced_bytes(), parameters, how.replicas(), on, how);
  if (how.overlapped) {
    const auto hidden = std::min(once * (1 - on.exposed_gradient), body);
    return {once - hidden, hidden};
  }
  return {once * gradient_exchanges(how), 0};
}

/// What two ranks of different stages both have.
double mirrored_time(const language_model& m, const gpu_system& on, const training_setting& how,
                     const rank_parameters& parameters) {
  double seconds = 0;
  if (how.copies() > 1)
    seconds += mirror_all_reduce_time(how.copies() * parameters.sum(), on, how.shape());
  if (how.pp > 1 && m.tied)
    seconds += mirror_all_reduce_time(table_parameters(m, how), on, how.shape());
  return seconds;
}

double update_time(const gpu_system& on, const training_setting& how, const rank_parameters& x) {
  auto updated = [&](double parameters, uint32_t sharing) { // by one of those that share them
    return parameters / (how.shard_ranks > 0 || how.zero > 0 ? sharing : 1);
  };
  const auto parameters = updated(x.dense, how.weight_sharers()) + updated(x.experts, how.expert_sharers());
  return how.copies() * parameters * update_seconds(on, how);
}

/// What a step ends with, of the stage that is ready last: its gradients' collectives, less what it ended its backwards
/// earlier than the first stage, and its update.
struct last_of_step {
  sharded_times shared;
  double update = 0;

  double sum() const { return shared.exposed + update; }
};

last_of_step last_of(const language_model& m, const gpu_system& on, const training_setting& how,
                     const micro_batch_times& times, const slowest_stages& stages) {
  const auto body = stages.with_ends.forward + stages.with_ends.backward;
  auto of = [&](const rank_parameters& x) {
    return last_of_step{shared_times_of(on, how, x, body), update_time(on, how, x)};
  };
  using enum pipeline_schedule;
  if (how.turns_around() || how.pp == 1)
    return of(most_parameters(m, how));
  const auto chunks = how.chunks_of_stage();
  // Where weights' halves are postponed they fill what a stage would be ready earlier.
  const double left = left_behind(how), filled = left > 0 ? 1 + left : 0;
  const auto ahead = [&](const stage_times& x) { return std::max(0.0, x.backward - filled * x.by_weight) / chunks; };
  const auto first = ahead(times_of_stage(stage_layers_of(m, how, 0), how, times));
  const part_parameters parts{m, how};
  last_of_step result;
  for (auto index : stages_that_count(m, how)) {
    auto x = of(parts.of(stage_layers_of(m, how, index), how));
    const auto earlier = index == 0 ? 0 : first + (index - 1) * ahead(stages.layers);
    const auto done = std::min(earlier, x.shared.exposed);
    x.shared.exposed -= done;
    x.shared.hidden += done;
    if (index == 0 || x.sum() > result.sum())
      result = x;
  }
  return result;
}

/// What the host link takes longer than the stage's work beside it, of what a micro-batch's layers keep, there and
/// back: in a pipeline forwards and backwards take turns beside both, else each way goes beside its own.
double offload_time(const language_model& m, const gpu_system& on, const training_setting& how, double forward,
                    double backward) {
  if (!how.offloads_activations)
    return 0;
  const auto bytes = largest_of_stages(m, how, [&](uint32_t stage) {
    const auto has = stage_layers_of(m, how, stage);
    const auto each = [&](bool experts, bool windowed) {
      return activation_bytes(m, how.micro_batch, how, {experts, windowed});
    };
    return (has.dense - has.windowed_dense) * each(false, false) + has.windowed_dense * each(false, true)
           + (has.experts - has.windowed_experts) * each(true, false) + has.windowed_experts * each(true, true);
  });
  const auto way = bytes / on.host_link_bandwidth;
  return how.pp > 1 ? std::max(0.0, 2 * way - forward - backward)
                    : std::max(0.0, way - forward) + std::max(0.0, way - backward);
}

} // namespace

micro_batch_times micro_batch_times_of(const language_model& m, const gpu_system& on, const training_setting& how) {
  micro_batch_times x;
  const bool windows = m.has_windows(), dense = m.has_dense_layers();
  if (m.experts.count > 0)
    x.sparse = layer_times_of(m, on, how, {true, false});
  if (m.experts.count > 0 && windows)
    x.windowed_sparse = layer_times_of(m, on, how, {true, true});
  if (dense)
    x.dense = layer_times_of(m, on, how, {false, false});
  if (dense && windows)
    x.windowed_dense = layer_times_of(m, on, how, {false, true});
  x.ends = end_times_of(m, on, how);
  const auto whole = times_of_layers(all_layers_of(m), x);
  x.whole_model = whole.sum() + (x.ends.embedding + x.ends.loss);
  x.whole_exposed = whole.exposed.sum();
  return x;
}

double update_seconds(const gpu_system& on, const training_setting& how) {
  constexpr double usual_state = 12, beside_state = 6;                      // bytes: a gradient in float32, a weight
  const auto moved = on.optimizer_bytes / (2 * usual_state + beside_state); // for each byte that must
  const auto state = 2 * how.state_bytes * moved, rest = beside_state * moved;
  return rest / on.memory_bandwidth + state / (how.offloads_states ? on.host_link_bandwidth : on.memory_bandwidth);
}

double exposed_gradients(const language_model& m, const gpu_system& on, const training_setting& how) {
  if (!how.overlapped)
    return 1;
  const auto slowest = slowest_stages_of(m, how, micro_batch_times_of(m, on, how)).with_ends;
  const auto x = shared_times_of(on, how, most_parameters(m, how), slowest.forward + slowest.backward);
  return x.exposed + x.hidden == 0 ? 1 : x.exposed / (x.exposed + x.hidden);
}

iteration_estimate estimate_iteration(const language_model& m, const gpu_system& on, const training_setting& how) {
  return estimate_iteration(m, on, how, micro_batch_times_of(m, on, how));
}

iteration_estimate estimate_iteration(const language_model& m, const gpu_system& on, const training_setting& how,
                                      const micro_batch_times& times) {
  ensure(how.micro_batches() > 0, "an iteration has micro-batches");
  const double p = how.pp, count = how.micro_batches();
  const auto stages = slowest_stages_of(m, how, times);
  const auto& slowest = stages.with_ends;
  const auto hop = hop_times_of(m, on, how, times, stages);
  iteration_estimate result;
  if (p > 1 && how.turns_around())
    result.bubble = bubble_beside_ends(how, stages, hop, times);
  else if (p > 1)
    result.bubble = bubble_of(m, how, stages, times.whole_model - slowest.sum()) + 2 * (p - 1) * hop.whole;
  if (p > 1 && how.schedule == pipeline_schedule::one_f_one_b)
    result.bubble = std::max(0.0, result.bubble + unevenness(m, how, times, slowest));
  if (p > 1)
    result.imbalance = count * imbalance_of(how, slowest, times);
  const auto parameters = most_parameters(m, how);
  const auto last = how.shard_ranks > 0
                      ? last_of_step{sharded_times_of(m, on, how, times), update_time(on, how, parameters)}
                      : last_of(m, on, how, times, stages);
  const auto& shared = last.shared;
  const auto ways = ways_of(how) * count;
  add(result.exposed.layers, slowest.exposed, ways);
  add(result.hidden.layers, slowest.hidden, ways);
  result.exposed.hops = count * hop.received * hop.exposed;
  result.hidden.hops = count * hop.received * (hop.whole - hop.exposed);
  result.exposed.gradients = shared.exposed + mirrored_time(m, on, how, parameters);
  result.hidden.gradients = shared.hidden;
  result.update = last.update;
  result.offload = count * offload_time(m, on, how, slowest.forward, slowest.backward);
  result.seconds = count * slowest.sum() + result.bubble + result.exposed.hops + result.exposed.gradients
                   + result.update + result.offload + on.iteration_s;
  // A system's constants may be too large to be counted: then times are not finite, and no comparison holds.
  ensure(!(result.bubble < 0) && !(result.imbalance < 0), "waiting takes no negative time");
  ensure(!(result.update < 0) && !(result.offload < 0), "updates and transfers take no negative time");
  ensure(!(result.hidden.sum() < 0) && !(result.exposed.hops < 0), "communication takes no negative time");
  ensure(!(result.seconds < 0), "an iteration takes no negative time");
  const auto memory = memory_of(m, how);
  result.memory_bytes = memory.total();
  result.host_bytes = memory.host;
  result.mfu = flops_of(m, how.global_batch, how.counts() == counted_scores::full)
               / (on.peak_of(how.computed_in) * how.devices() * result.seconds);
  return result;
}

} // namespace ringmaster::training
