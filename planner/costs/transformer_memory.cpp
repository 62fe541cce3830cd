#include "planner/costs/transformer_memory.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/memory_estimate.hpp"
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

} // namespace ringmaster::training
