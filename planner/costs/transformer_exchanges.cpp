#include "planner/costs/transformer_exchanges.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/iteration_estimate.hpp"
#include "planner/estimates/sharded_times.hpp"
#include "runtime/invariants/ensure.hpp"

namespace ringmaster::training {

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
