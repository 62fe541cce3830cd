#include "planner/costs/transformer_exchanges.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/iteration_estimate.hpp"
#include "planner/estimates/memory_estimate.hpp"
#include "planner/estimates/sharded_times.hpp"
#include "runtime/invariants/ensure.hpp"
#include "training/simulated/cost_model.hpp"

namespace ringmaster::training {

uint64_t transformer_memory::own_samples(const value_tag& x) const {
  const auto count = x.samples.count();
  if (x.has != form::experts)
    return count;
  const auto sent = sent_positions(x); // by ranks that have 1 / (tensor x context) of their samples each
  return count * sent.count * how_.tp * context_ / (sent.of * x.part.count);
}

rank_parameters transformer_memory::parameters(const value_tag& x) const {
  const auto all = places_.parameters(x.layer);
  if (x.part.whole())
    return {all.dense, all.experts};
  const double sharers = how_.weight_sharers(), expert_sharers = how_.expert_sharers();
  ensure(sharers >= 1 && expert_sharers >= 1, "at least one rank has a weight");
  const auto of_dense = fewer_sharers_ ? sharers : static_cast<double>(x.part.count);
  return {all.dense / of_dense, all.experts / (of_dense * expert_sharers / sharers)}; // with others of them: fewer
}

double transformer_memory::state_parameters(value_tag x) const {
  if (how_.zero == 0)
    return parameters(x).sum();
  x.part = {};
  const auto whole = parameters(x);
  return whole.dense / how_.replicas() + whole.experts / how_.expert_replicas();
}

double transformer_memory::bytes_of(const value_tag& x) const {
  if (of_activation(x.kind))
    return activation_bytes_of(x);
  // gradients are added to a buffer that is always there (Megatron-LM)
  const bool buffer = how_.zero <= 1 && how_.shard_ranks == 0;
  if (x.kind == value_kind::weight && buffer && !x.part.whole())
    return 0; // of the whole, where that lies
  if (x.kind == value_kind::weight)
    return (training::bytes_of(how_.computed_in).weight + (buffer ? how_.gradient_bytes : 0)) * parameters(x).sum();
  if (x.kind == value_kind::weight_gradient)
    return buffer ? 0 : how_.gradient_bytes * parameters(x).sum();
  return how_.offloads_states ? 0 : how_.state_bytes * state_parameters(x);
}

bool transformer_memory::is_kept(const value_tag& x) const {
  return x.kind == value_kind::activation && x.layer < places_.count() && x.has != form::summand
         && (shards_represent_all_ || is_part_of_tensor_rank(x) == in_sequence());
}

double transformer_memory::activation_bytes_of(const value_tag& x) const {
  if (places_.takes_nothing(x.layer))
    return 0;
  const auto samples = static_cast<double>(own_samples(x));
  const auto plain = plain_bytes(samples), tensor = static_cast<double>(how_.tp);
  if (x.kind >= value_kind::attention_keys) // a rank's own are the layer's, a ring's are in use while it computes
    return x.has == form::whole && of_keys(x.kind) ? key_bytes(trained_, how_, samples) * how_.cp : 0;
  if (x.has == form::experts)
    return x.kind == value_kind::activation && !places_.has_attention(x.layer) ? 0 : plain / tensor;
  const bool part = is_part_of_tensor_rank(x);
  if (x.kind == value_kind::activation && x.layer == places_.count() && !part && x.has != form::summand) // of logits
    return plain + (1 + trained_.multi_token) * 2 * plain / trained_.hidden * trained_.vocabulary / tensor
           + trained_.multi_token * activation_bytes(trained_, samples, how_, {trained_.experts.count > 0, false});
  if (!is_kept(x) || !places_.is_layer(x.layer))
    return part ? plain / tensor : plain;
  return places_.has_attention(x.layer) ? activation_bytes(trained_, samples, how_, places_.kind_of(x.layer)) : 0;
}

double transformer_memory::working_bytes(const pending& x) const {
  if (!places_.is_layer(x.argument.layer))
    return 0;
  const auto samples = static_cast<double>(own_samples(x.argument));
  const bool in_ring = context_ > 1 && !x.argument.positions().all();
  if (x.what == op::attend)
    return in_ring ? 2 * key_bytes(trained_, how_, samples) : 0; // at hand, and coming
  const bool goes_back = x.what == op::backward || x.what == op::backward_input;
  if (!goes_back && x.what != op::attend_backward)
    return 0;
  const bool has_ring = x.what == op::attend_backward ? in_ring : context_ == 1;
  double bytes = has_ring && places_.has_attention(x.argument.layer) ? ring_bytes(trained_, how_, samples) : 0;
  if (shards_represent_all_ && in_sequence()) // the layer's input, gathered: no tensor-parallel ranks are simulated
    bytes += plain_bytes(samples);
  auto whole = how_;
  whole.again = recomputation::none;
  const auto kind = places_.kind_of(x.argument.layer);
  return bytes + activation_bytes(trained_, samples, whole, kind) - activation_bytes(trained_, samples, how_, kind);
}

namespace {

/// Of whole layers, more than there are where they do not divide.
uint32_t whole_places(const language_model& trained, const training_setting& how) {
  return how.chunk_layers(trained.layers) * how.chunks_of_stage() * how.pp;
}

} // namespace

transformer_places::transformer_places(const language_model& trained, const training_setting& how, bool network_apart)
  : trained_(trained), how_(how), parts_(network_apart ? 2 : 1), whole_(whole_places(trained, how)),
    before_(whole_ != trained.layers ? 1 : 0) {
  ensure(whole_ >= trained.layers, "each layer has a place");
}

rank_parameters transformer_places::parameters(uint32_t place) const {
  rank_parameters result;
  if (is_layer(place)) {
    const auto layer = layer_parameters(trained_, how_, kind_of(place));
    result += {has_attention(place) ? layer.dense : 0, has_network(place) ? layer.experts : 0};
  }
  if (is_first(place))
    result += {table_parameters(trained_, how_), 0};
  if (has_output(place))
    result += output_parameters(trained_, how_);
  return result;
}

training_setting transformer_layers::with_samples(uint64_t samples) const {
  ensure(samples <= UINT32_MAX, "a batch has at most 2^32 samples");
  auto how = how_;
  how.micro_batch = static_cast<uint32_t>(samples);
  return how;
}

layer_times transformer_layers::layer_of(uint64_t samples, uint32_t place) const {
  if (!places_.is_layer(place))
    return {};
  const auto kind = places_.kind_of(place);
  auto [at, is_new] = known_[samples].layers.try_emplace(kind.experts * 2u + kind.windowed);
  if (is_new) {
    at->second = layer_times_of(trained_, on_, with_samples(samples), kind);
    if (how_.shard_ranks > 0 && how_.overlapped)
      at->second = beside_shards(at->second, shard_exchanges_of(trained_, on_, how_, kind), on_);
  }
  return at->second;
}

double transformer_layers::hop_of(uint64_t samples) const {
  auto& x = known_[samples].hop;
  if (x < 0) {
    const auto how = with_samples(samples);
    x = hop_time(trained_, on_, how);
    if (how_.micro_batches() >= how_.pp) // else stages have nothing to do beside it
      x = exposed_hop_time(x, micro_batch_times_of(trained_, on_, how).whole_model, on_, how);
  }
  return x;
}

const end_times& transformer_layers::ends_of(uint64_t samples) const {
  auto& x = known_[samples].ends;
  if (x.loss == 0)
    x = end_times_of(trained_, on_, with_samples(samples));
  return x;
}

namespace {

/// Of a collective on the way through a layer, or back, that layer's place: outputs, and gradients by them, are values
/// of the next one.
uint32_t place_of(const pending& x) {
  const bool output = x.argument.kind == value_kind::activation ? x.what != op::all_gather : x.what == op::all_gather;
  return x.argument.layer - (output ? 1 : 0);
}

} // namespace

transformer_exchanges::transformer_exchanges(const language_model& trained, const gpu_system& on,
                                             const training_setting& how, const transformer_places& places,
                                             const transformer_memory& memory, const transformer_layers& layers,
                                             uint32_t stage_size, bool shards_represent_all)
  : trained_(trained), on_(on), how_(how), places_(places), memory_(memory), layers_(layers), stage_size_(stage_size),
    shards_represent_all_(shards_represent_all),
    gradients_exposed_(how.shard_ranks > 0 || how.as_simulated ? 1 : exposed_gradients(trained, on, how)) {
  ensure(stage_size > 0, "a stage has ranks");
  ensure(!(gradients_exposed_ < 0) && !(gradients_exposed_ > 1),
         "at most all of the gradients' collectives are exposed");
}

/// Naive tensor parallelism: the columns of each product's output are gathered, and the gradients by each product's
/// input reduced and scattered, behind nothing.
double transformer_exchanges::columns_time(const pending& x) const {
  const bool gathers = x.what == op::all_gather;
  const auto place = x.argument.layer - (gathers ? 1 : 0);
  if (!places_.is_layer(place))
    return 0;
  const auto& e = trained_.experts;
  const double h = trained_.hidden, up = trained_.gated ? 2 : 1;
  const auto width = places_.kind_of(place).experts ? 1.0 * e.chosen * e.width + e.shared_width : trained_.width;
  auto made = trained_.heads * 1.0 * trained_.head_size, keys = 2.0 * trained_.key_value_heads * trained_.head_size;
  if (const auto& latent = trained_.latent; latent.key_value_rank > 0) { // what attention makes of them, whole
    made = trained_.heads * 1.0 * latent.value_size;
    keys = trained_.heads * (2.0 * trained_.head_size + 2 * latent.rotary_size);
  }
  const auto elements = gathers ? made + keys + h + up * width + h : h + made + h + width;
  const auto rows = static_cast<double>(x.argument.samples.count()) * trained_.sequence / how_.cp;
  return tensor_all_reduce_time(bf16_bytes * rows * elements, how_.tp, on_) / 2;
}

double transformer_exchanges::keys_time(const value_tag& x) const {
  if (!places_.has_attention(x.layer) || how_.cp == 1)
    return 0;
  const auto layer = layers_.layer_of(x.samples.count(), x.layer);
  const auto all = 2 * (layer.exposed.context + layer.hidden.context); // around forward, back twice, and then home
  return all / (3.0 * how_.cp - 2);
}

/// All of them, or the gradients by all, at once.
double transformer_exchanges::gathered_keys_time(const pending& x) const {
  if (!places_.is_layer(x.argument.layer) || !places_.has_attention(x.argument.layer))
    return 0;
  const auto bytes = key_bytes(trained_, how_, static_cast<double>(x.argument.samples.count())) * how_.cp;
  return ring_time(bytes, on_, x.among.count, x.among.stride, how_.devices())
         + ring_latency(on_, x.among.count, x.among.stride, how_.devices());
}

double transformer_exchanges::of_activations(const pending& x) const {
  const auto& tag = x.argument;
  const auto halves = x.what == op::all_reduce ? 1.0 : 0.5;
  const auto samples = memory_.own_samples(tag);
  if (of_keys(tag.kind))
    return gathered_keys_time(x);
  if (x.what == op::all_to_all) { // there or back; of what they have made, the next layer's
    const auto layer = layers_.layer_of(samples, tag.layer - (places_.has_attention(tag.layer) ? 1 : 0));
    return (layer.exposed.experts + layer.hidden.experts) / 2;
  }
  if (tag.has == form::columns || x.results[0].has == form::columns)
    return columns_time(x);
  if (x.what == op::all_gather && !memory_.in_sequence()) { // what came back from experts: all ranks have all
    const auto from = tag.layer - (tag.kind == value_kind::activation ? 1 : 0);
    const auto whole = memory_.plain_bytes(static_cast<double>(samples));
    return places_.is_layer(from) ? tensor_all_reduce_time(whole, how_.tp, on_) / 2 : 0;
  }
  const auto place = place_of(x);
  if (!places_.has_attention(place)) // which stands for the whole layer; what the loss needs is in its time
    return 0;
  // A layer's collective stands for all of them on its way. Its input is gathered on both, the second time beside
  // the gradient by it: each counts half.
  const bool input = x.what == op::all_gather && tag.kind == value_kind::activation;
  return halves * (input ? 0.5 : 1) * layers_.layer_of(samples, place).exposed.tensor;
}

double transformer_exchanges::collective_time(const pending& x) const {
  const auto& tag = x.argument;
  if (of_activation(tag.kind))
    return of_activations(x);
  const auto halves = x.what == op::all_reduce ? 1.0 : 0.5;
  auto whole = tag;
  whole.part = {};
  const auto held = memory_.parameters(whole);
  if (x.among.count == 2 && x.among.stride % stage_size_ == 0)
    return halves * mirror_all_reduce_time(held.sum(), on_, how_.shape()); // of two stages
  if (shards_represent_all_)
    return x.what == op::all_reduce ? groups_all_reduce_time(memory_.parameters(tag), on_, how_) : shards_time(x, held);
  if (how_.shard_ranks > 0 || how_.as_simulated) { // as the strategy has its groups
    const auto bytes = moved_bytes(x.what) * held.sum();
    if (x.what == op::all_reduce)
      return all_reduce_time(bytes / tag.part.count, on_, x.among.count, x.among.stride, how_.devices());
    return ring_time(bytes, on_, x.among.count, x.among.stride, how_.devices())
           + ring_latency(on_, x.among.count, x.among.stride, how_.devices());
  }
  return halves * gradient_time(held, moved_bytes(x.what));
}

double transformer_exchanges::shards_time(const pending& x, const rank_parameters& held) const {
  const auto ring = shard_time(moved_bytes(x.what), held, on_, how_) + shard_latency(held.experts > 0, on_, how_);
  return x.what == op::all_gather ? ring + busy_cards(layers_.layer_of(how_.micro_batch, x.argument.layer), on_, how_)
                                  : ring;
}

double transformer_exchanges::gradient_time(const rank_parameters& held, double bytes) const {
  return all_reduce_time(bytes, held, how_.replicas(), on_, how_) * gradients_exposed_;
}

} // namespace ringmaster::training
