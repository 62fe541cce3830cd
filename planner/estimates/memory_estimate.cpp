#include "planner/estimates/memory_estimate.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/layer_times.hpp"
#include "planner/estimates/stage_layers.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

constexpr double logit_bytes = 4;

/// Of a layer, a position: the inputs of norms, products, scores and gates, and which elements dropouts let pass. Of a
/// GPT in bf16 with networks four times its width these are table 2 of Korthikanti et al. 2022: 10 h + 24 h / t.
double bytes_of_position(const language_model& m, const training_setting& how, layer_kind kind) {
  const double h = m.hidden, t = how.tp, shared = how.sequence_parallel ? t : 1;
  const auto kept = bytes_of(how.computed_in).kept;
  const bool again = how.again == recomputation::selective && how.attention == attention_kernel::flash;
  const auto heads = m.heads / t, groups = m.key_value_heads_on(how.tp);
  const double dropouts = m.dropouts ? 2 : 0, norms = m.parallel ? 1 : m.norms, inputs = m.parallel ? 1 : 2;
  // The core's own, in tiles, which its backward reads again, is what the next product reads only where both are bf16.
  const auto output = how.attention == attention_kernel::flash && kept != bf16_bytes ? bf16_bytes + kept : kept;
  auto bytes = (norms * bf16_bytes + (again ? 0 : inputs * kept) + dropouts) * h / shared;
  if (auto& l = m.linear;
      kind.windowed && l.value_heads > 0) { // before the convolution, after it; the gate; the output
    bytes += (bf16_bytes * (2 * (2 * l.keys() + l.values()) + l.values()) + output * l.values()) / t;
  } else if (auto& x = m.latent; x.key_value_rank > 0) {
    const auto made = heads * (2.0 * (m.head_size + x.rotary_size) + x.value_size) * bf16_bytes;
    bytes += (kept + bf16_bytes) * (x.query_rank + x.key_value_rank) + (again ? 0 : made);
    bytes += output * heads * x.value_size;
  } else {
    bytes += bf16_bytes * ((m.gated_attention ? 2 : 1) * heads + 2.0 * groups) * m.head_size
             + output * heads * m.head_size;
  }
  // What activation functions read is kept in the format of products where their output is made again: DeepSeek-AI
  // 2024, section 3.3.3; Megatron Core's --activation-func-fp8-input-store, of gated networks.
  const auto read = again && m.gated ? std::min<double>(kept, bf16_bytes) : bf16_bytes;
  auto network = [&](double width) { return read * (m.gated ? 2 : 1) * width + (again ? 0 : kept * width); };
  if (!kind.experts)
    return bytes + network(m.width) / t;
  const double taken = m.experts.chosen * m.experts.most(how.ep) / t;
  return bytes + taken * (network(m.experts.width) + kept * h) + network(m.experts.shared_width) / t;
}

/// What a stage's rank holds of micro-batches: their activations; the gradients by outputs whose weights' half is
/// postponed, as many layers of them; logits.
struct held_micro_batches {
  double activations = 0, gradients = 0, logits = 1, outputs = 1;
  double later_activations = 0, later_gradients = 0; ///< At another time, if these are more.
};

/// Of interleaved 1F1B, the chunks' micro-batches that a stage has begun before its first backward: all, where none
/// begins before all forwards have ended.
uint32_t begun_interleaved(const training_setting& how, uint32_t stage) {
  ensure(stage < how.pp && how.chunks > 0, "a pipeline has that stage, with chunks");
  const auto p = how.pp, m = how.micro_batches(), v = how.chunks;
  return m == p ? m * v : std::min(m * v, 2 * (p - 1 - stage) + (v - 1) * p + 1);
}

held_micro_batches held_by(const training_setting& how, uint32_t stage) {
  const double p = how.pp, m = how.micro_batches(), i = stage;
  const held_micro_batches all_at_once{m, 0, how.sequence_parallel ? 1 : m, m}; // else the logits are made when needed
  switch (how.schedule) {
    case pipeline_schedule::one_f_one_b: return {std::min(m, p - i)};
    case pipeline_schedule::all_forwards_first: return all_at_once;
    case pipeline_schedule::interleaved_1f1b:
      if (how.micro_batches() == how.pp) // no backward begins before all forwards have ended
        return all_at_once;
      return {static_cast<double>(begun_interleaved(how, stage)) / how.chunks}; // the mean
    case pipeline_schedule::zb_h1: return {std::min(m, p), std::min(m, i)};
    case pipeline_schedule::zb_h2: return {std::min(m, 2 * p - 1), std::min(m, 2 * i)};
    case pipeline_schedule::zb_v: // the weights' halves wait longest where the pipeline turns round
      return {std::min(m, p), 0.5, 1, 1, std::min(m, (p + i) / 2), std::min(m, i + 0.5)};
    default: return {std::min(m, p + 1)};
  }
}

/// Adds weights, gradients and states of parameters that `sharing` ranks share.
void add_states(memory_parts& x, double parameters, double sharing, const training_setting& how) {
  ensure(parameters >= 0 && sharing >= 1, "parameters are shared by at least one rank");
  ensure(how.zero <= 3, "ZeRO has stages 0 to 3");
  const auto zero = how.shard_ranks > 0 ? 3 : how.zero;
  const auto weight = bytes_of(how.computed_in).weight;
  x.weights += parameters * (zero >= 3 ? weight / sharing : weight);
  x.gradients += parameters * (zero >= 2 ? how.gradient_bytes / sharing : how.gradient_bytes);
  (how.offloads_states ? x.host : x.optimizer) += parameters
                                                  * (zero >= 1 ? how.state_bytes / sharing : how.state_bytes);
}

layer_kind last_kind(const language_model& m) {
  return {m.has_experts(m.layers - 1), m.is_windowed(m.layers - 1)};
}

double last_layer(const language_model& m, const training_setting& how) {
  return layer_parameters(m, how, last_kind(m)).sum();
}

/// Of what ZeRO's ranks share: a layer's gradient where none is kept whole; in stage 3 two layers' weights, the next
/// one's while the one before is used.
double whole_bytes_of(const language_model& m, const training_setting& how) {
  if (how.zero <= 1)
    return 0;
  return last_layer(m, how) * (how.gradient_bytes + (how.zero == 3 ? 2 * bytes_of(how.computed_in).weight : 0));
}

/// Of a rank that shares its weights fully: what it holds when it holds the most. `x` has all that there is at any
/// time; `activations`: one layer's; `in_flight`: what a backward has on its way. A layer's whole gradient is held
/// while it is scattered beside the next layer's backward.
memory_parts largest_moment(const language_model& m, const training_setting& how, memory_parts x, double activations,
                            double in_flight) {
  const auto weight = bytes_of(how.computed_in).weight;
  const auto layer = last_layer(m, how), table = table_parameters(m, how), output = output_parameters(m, how).sum();
  const bool several = how.micro_batches() > 1; // else nothing has been added up when the only backward begins
  const auto parts = layer_parameters(m, how, last_kind(m));
  const auto shard = parts.dense / how.sharers() + parts.experts / how.expert_sharers();
  const auto first_alike = m.experts.count == 0 ? 0 : m.experts.dense_first; // of those as large as the last one
  const auto first_table = first_alike == 0 ? table : 0;
  auto last_scattered = x, second_begins = x;
  last_scattered.activations -= activations;
  last_scattered.buffers = weight * 2 * layer + how.gradient_bytes * (layer + output) + in_flight;
  second_begins.activations = (2 + first_alike) * activations;
  second_begins.buffers = weight * (2 * layer + first_table) + how.gradient_bytes * layer + in_flight;
  x.buffers = weight * (2 * layer + output) + in_flight;
  last_scattered.logits = second_begins.logits = 0;
  if (!several) {
    x.gradients = last_scattered.gradients = 0;
    second_begins.gradients -= how.gradient_bytes * (3 * shard + table / how.sharers());
  }
  auto dense_begins = second_begins; // the second of several dense ones, which may be larger
  if (first_alike > 1) {
    const auto dense = layer_parameters(m, how, {false, m.is_windowed(0)}).sum();
    dense_begins.activations = 2 * activations;
    dense_begins.buffers = weight * (2 * dense + table) + how.gradient_bytes * dense + in_flight;
  }
  return std::max({x, last_scattered, second_begins, dense_begins},
                  [](auto& one, auto& other) { return one.total() < other.total(); });
}

} // namespace

double activation_bytes(const language_model& m, double samples, const training_setting& how, layer_kind kind) {
  const auto rows = samples * m.sequence / how.cp;
  if (how.again == recomputation::full)
    return bf16_bytes * rows * m.hidden / (how.sequence_parallel ? how.tp : 1);
  auto bytes = rows * bytes_of_position(m, how, kind);
  if (how.attention == attention_kernel::unfused && how.again == recomputation::none)
    bytes += 5 * rows * m.sequence * m.heads / how.tp;
  return bytes;
}

double ring_bytes(const language_model& m, const training_setting& how, double samples) {
  const auto blocks = how.cp == 1 ? 0 : how.cp == 2 ? 4 : 5; // of two, none comes beside the last one
  return blocks * key_bytes(m, how, samples);
}

double zero_bytes(uint32_t stage, double ranks, double gradient_bytes_each) {
  ensure(stage <= 3 && ranks >= 1, "ZeRO has stages 0 to 3 and at least one rank");
  constexpr double weight_bytes = 2, state_bytes = 12; // of an fp32 copy, momentum and variance
  return (stage >= 3 ? weight_bytes / ranks : weight_bytes)
         + (stage >= 2 ? gradient_bytes_each / ranks : gradient_bytes_each)
         + (stage >= 1 ? state_bytes / ranks : state_bytes);
}

double layers_kept_by_first(const language_model& m, const training_setting& how) {
  return held_by(how, 0).activations * m.layers / how.pp;
}

namespace {

/// What a layer of each kind keeps of a micro-batch.
struct kept_by_layer {
  kept_by_layer(const language_model& m, const training_setting& how, const stage_layers& has)
    : has_linear(m.linear.value_heads > 0) {
    auto of = [&](double layers, layer_kind kind) {
      return layers > 0 ? activation_bytes(m, how.micro_batch, how, kind) : 0;
    };
    dense = of(has.dense, {false, false});
    experts = of(has.experts, {true, false});
    if (has_linear) { // else windows change nothing of it
      linear_dense = of(has.windowed_dense, {false, true});
      linear_experts = of(has.windowed_experts, {true, true});
    }
  }
  double of(const stage_layers& has) const {
    const auto all = has.dense * dense + has.experts * experts;
    return has_linear
             ? all + has.windowed_dense * (linear_dense - dense) + has.windowed_experts * (linear_experts - experts)
             : all;
  }
  double most() const { return std::max({dense, experts, linear_dense, linear_experts}); }

  bool has_linear;
  double dense = 0, experts = 0, linear_dense = 0, linear_experts = 0;
};

/// Of interleaved 1F1B, a layer of each kind's bytes times how many micro-batches of it a stage holds at most: of each
/// of its chunks, those that it has started before its first backward, p of each chunk in turn.
double held_interleaved(const language_model& m, const training_setting& how, uint32_t stage, const kept_by_layer& each,
                        double logits_input) {
  const auto p = how.pp, v = how.chunks, begun = begun_interleaved(how, stage);
  const auto rounds = begun / (p * v), rest = begun % (p * v);
  ensure(begun <= v * how.micro_batches(), "a stage holds no more than all chunks of all micro-batches");
  double bytes = 0;
  for (uint32_t chunk = 0; chunk < v; ++chunk) {
    const auto held = rounds * p + std::clamp<int64_t>(int64_t{rest} - int64_t{chunk} * p, 0, p);
    const auto has = chunk_layers_of(m, how, stage, chunk);
    const auto inputs = has.logits && has.apart ? logits_input : 0;
    bytes += static_cast<double>(held) * (each.of(has) + inputs);
  }
  return bytes;
}

memory_parts memory_of(const language_model& m, const training_setting& how, uint32_t stage,
                       const part_parameters& parts) {
  const double t = how.tp;
  const auto rows = static_cast<double>(how.micro_batch) * m.sequence / how.cp;
  const auto hidden_bytes = bf16_bytes * rows * m.hidden / (how.sequence_parallel ? t : 1);
  const auto has = stage_layers_of(m, how, stage);
  const auto parameters = parts.of(has, how);
  const auto held = held_by(how, stage);
  memory_parts x;
  add_states(x, how.copies() * parameters.dense, how.weight_sharers(), how);
  add_states(x, how.copies() * parameters.experts, how.expert_sharers(), how);
  const kept_by_layer each_layer{m, how, has};
  const auto dense = each_layer.dense, sparse = each_layer.experts;
  const auto of_logits = has.logits && has.apart ? 1.0 : 0.0; // whose input waits, too, where they have a place
  const auto layers = each_layer.of(has) + of_logits * hidden_bytes;
  const auto postponed = (has.dense + has.experts + of_logits) * hidden_bytes;
  const auto kept = how.schedule == pipeline_schedule::interleaved_1f1b
                      ? held_interleaved(m, how, stage, each_layer, hidden_bytes)
                      : held.activations * layers;
  const auto all = std::max(kept + held.gradients * postponed,
                            held.later_activations * layers + held.later_gradients * postponed);
  x.activations = how.offloads_activations ? std::min(all, 2 * each_layer.most() + held.gradients * postponed) : all;
  ensure(x.activations <= all, "no more activations stay on the device than there are");
  x.host += all - x.activations;
  auto whole = how;
  whole.again = recomputation::none;
  const layer_kind last{has.experts > 0, false};
  const auto again = activation_bytes(m, how.micro_batch, whole, last)
                     - activation_bytes(m, how.micro_batch, how, last);
  ensure(again >= 0, "recomputation keeps no more than a layer does without it");
  const bool postpones = how.schedule == pipeline_schedule::zb_h1 || how.schedule == pipeline_schedule::zb_h2;
  const auto beside = t > 1 || has.logits ? 1 : 0; // a sum or the loss's gradient
  const auto gradients = hidden_bytes * (postpones ? has.dense + has.experts + beside : 1);
  // either an output is on its way, or a backward runs, or there are logits
  const auto output = has.logits ? 0 : has.experts > 0 ? sparse : dense;
  const auto gathered = how.sequence_parallel && t > 1 ? 2 * t * hidden_bytes
                                                       : 0; // an input, the gradient by an output
  const auto backward = gradients + again + gathered + ring_bytes(m, how, how.micro_batch);
  const auto in_flight = std::max(output, backward);
  x.buffers = whole_bytes_of(m, how) + in_flight; // of which there is nothing when there are logits
  if (has.logits) {
    const auto module = m.multi_token > 0 ? activation_bytes(m, how.micro_batch, how, {m.experts.count > 0, false}) : 0;
    const auto each = (1.0 + m.multi_token) * logit_bytes * rows * padded_vocabulary(m, how.tp) / t
                      + bf16_bytes * rows * m.hidden + m.multi_token * module;
    const auto outputs = how.sequence_parallel ? (held.outputs - 1) * hidden_bytes : 0;
    // when a backward runs, its own are gone; DualPipe has another micro-batch's, and ZB-V postpones nothing yet
    const auto another = how.sequence_parallel ? hidden_bytes : each;
    const auto others = how.schedule == pipeline_schedule::dualpipe ? another : (held.logits - 1) * each;
    const auto not_yet = how.schedule == pipeline_schedule::zb_v ? held.gradients * postponed : 0;
    x.logits = std::max({0.0, held.logits * each + outputs - x.buffers - not_yet, others + outputs});
  }
  const auto result = how.shard_ranks > 0 ? largest_moment(m, how, x, has.dense > 0 ? dense : sparse, backward) : x;
  ensure(result.weights >= 0 && result.optimizer >= 0 && result.host >= 0, "a rank's states take no negative memory");
  ensure(result.activations >= 0 && result.buffers >= 0 && result.logits >= 0,
         "a rank's activations take no negative memory");
  return result;
}

} // namespace

memory_parts memory_of(const language_model& m, const training_setting& how, uint32_t stage) {
  return memory_of(m, how, stage, {m, how});
}

memory_parts memory_of(const language_model& m, const training_setting& how) {
  const part_parameters parts{m, how};
  auto of = [&](uint32_t stage) { return memory_of(m, how, stage, parts); };
  auto result = largest_of_stages(m, how, of, &memory_parts::total);
  if (how.offloads_states || how.offloads_activations) // another stage may be the one that off-loads the most
    result.host = largest_of_stages(m, how, of, &memory_parts::host).host;
  ensure(result.total() > 0, "a rank holds something");
  return result;
}

} // namespace ringmaster::training
