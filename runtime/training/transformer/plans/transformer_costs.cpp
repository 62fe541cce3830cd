#include "runtime/training/transformer/plans/transformer_costs.hpp"

#include "runtime/training/transformer/estimates/exchange_times.hpp"
#include "runtime/training/transformer/estimates/iteration_estimate.hpp"
#include "runtime/training/transformer/plans/transformer_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ringmaster::training {

namespace {

bool has(const std::vector<beyond>& all, beyond x) {
  return std::ranges::find(all, x) != all.end();
}

/// Of a collective on the way through a layer, or back, that layer's place: outputs, and gradients by them, are values
/// of the next one.
uint32_t place_of(const pending& x) {
  const bool output = x.argument.kind == value_kind::activation ? x.what != op::all_gather : x.what == op::all_gather;
  return x.argument.layer - (output ? 1 : 0);
}

class transformer final : public cost_model {
public:
  /// With `simulated`, some ranks stand for all.
  transformer(const language_model& trained, const gpu_system& on, const parallel_setting& how,
              const std::vector<beyond>& by_strategy, const mesh* simulated)
    : model_(trained), on_(on), how_(how), keys_apart_(has(by_strategy, beyond::positions)),
      network_apart_(has(by_strategy, beyond::experts)),
      stage_size_(simulated ? simulated->stage_size() : how.shape.stage_size() * (keys_apart_ ? how.context : 1)),
      shards_stand_for_all_(simulated && how.shard > 0),
      gradients_exposed_(how.shard > 0 || how.as_simulated ? 1 : exposed_gradients(trained, on, how)),
      places_(model_, how_, network_apart_),
      memory_(model_, how_, places_, keys_apart_ ? how.context : 1, shards_stand_for_all_) {}

  std::string_view name() const override { return "transformer"; }
  std::string about() const override {
    return fmt::format("{} on {}, recompute {}", model_.name, on_.name, ringmaster::training::name_of(how_.again));
  }
  uint64_t room() const override { return static_cast<uint64_t>(on_.room_bytes()); }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return false; }
  bool knows(beyond x) const override {
    return x == beyond::positions ? keys_apart_ : x == beyond::experts ? network_apart_ : true;
  }

  uint64_t memory_of(const value_tag& x) const override { return static_cast<uint64_t>(memory_.bytes_of(x)); }
  double time_of(const pending& x, uint32_t world_size) const override;
  uint64_t working_memory(const pending& x) const override { return static_cast<uint64_t>(memory_.working_bytes(x)); }

  double mfu_percent(const model& trained, uint32_t, double time) const override {
    const auto flops = flops_of(model_, static_cast<double>(trained.global_batch),
                                how_.attention == attention_kernel::unfused);
    return 100 * flops / (on_.peak_of(how_.computed_in) * how_.devices() * time);
  }

private:
  struct times {
    std::map<uint32_t, layer_times> layers; ///< By experts and windows.
    end_times ends;
  };
  layer_times layer_of(uint64_t samples, uint32_t place) const;
  const end_times& ends_of(uint64_t samples) const;
  parallel_setting with_samples(uint64_t samples) const {
    auto how = how_;
    how.micro_batch = static_cast<uint32_t>(samples);
    return how;
  }
  double collective_time(const pending& x) const;
  double activation_collective_time(const pending& x) const;
  double columns_time(const pending& x) const;
  double gradient_time(const rank_parameters& held, double bytes) const;
  /// Of a parameter, in one of these.
  double moved_bytes(op what) const {
    return what == op::all_gather ? bytes_of(how_.computed_in).gathered : how_.gradient_bytes;
  }
  double update_time(const value_tag& x) const;
  double keys_time(const value_tag& x) const;
  double gathered_keys_time(const pending& x) const;
  double attention_time(const pending& x) const;
  double computing_time(const pending& x) const;

  language_model model_;
  gpu_system on_;
  parallel_setting how_;
  bool keys_apart_, network_apart_; ///< Are the strategy's operations.
  uint32_t stage_size_;
  bool shards_stand_for_all_; ///< Two for those of all that share weights fully.
  double gradients_exposed_;  ///< Part of their collectives.
  transformer_places places_;
  transformer_memory memory_;
  mutable std::map<uint64_t, times> known_; ///< By samples.
};

layer_times transformer::layer_of(uint64_t samples, uint32_t place) const {
  if (!places_.is_layer(place))
    return {};
  const auto kind = places_.kind_of(place);
  auto [at, is_new] = known_[samples].layers.try_emplace(kind.experts * 2u + kind.windowed);
  if (is_new)
    at->second = layer_times_of(model_, on_, with_samples(samples), kind);
  return at->second;
}

const end_times& transformer::ends_of(uint64_t samples) const {
  auto& x = known_[samples].ends;
  if (x.loss == 0)
    x = end_times_of(model_, on_, with_samples(samples));
  return x;
}

/// Naive tensor parallelism: the columns of each product's output are gathered, and the gradients by each product's
/// input reduced and scattered, behind nothing.
double transformer::columns_time(const pending& x) const {
  const bool gathers = x.what == op::all_gather;
  const auto place = x.argument.layer - (gathers ? 1 : 0);
  if (!places_.is_layer(place))
    return 0;
  const auto& e = model_.experts;
  const double h = model_.hidden, up = model_.gated ? 2 : 1;
  const auto width = places_.kind_of(place).experts ? 1.0 * (e.chosen + e.shared) * e.width : model_.width;
  auto made = model_.heads * 1.0 * model_.head_size, keys = 2.0 * model_.key_value_heads * model_.head_size;
  if (const auto& latent = model_.latent; latent.key_value_rank > 0) { // what attention makes of them, whole
    made = model_.heads * 1.0 * latent.value_size;
    keys = model_.heads * (2.0 * model_.head_size + 2 * latent.rotary_size);
  }
  const auto elements = gathers ? made + keys + h + up * width + h : h + made + h + width;
  const auto rows = static_cast<double>(x.argument.samples.count()) * model_.sequence / how_.context;
  return tensor_all_reduce_time(bf16_bytes * rows * elements, how_.shape.tensor, on_) / 2;
}

/// A ring's hop of keys and values, or of the gradients by them, which takes as long.
double transformer::keys_time(const value_tag& x) const {
  if (!places_.has_attention(x.layer) || how_.context == 1)
    return 0;
  const auto layer = layer_of(x.samples.count(), x.layer);
  const auto all = 2 * (layer.exposed.context + layer.hidden.context); // around forward, back twice, and then home
  return all / (3.0 * how_.context - 2);
}

/// All of them, or the gradients by all, at once.
double transformer::gathered_keys_time(const pending& x) const {
  if (!places_.is_layer(x.argument.layer) || !places_.has_attention(x.argument.layer))
    return 0;
  const auto bytes = key_bytes(model_, how_, static_cast<double>(x.argument.samples.count())) * how_.context;
  return ring_time(bytes, on_, x.among.count, x.among.stride, how_.devices())
         + ring_latency(on_, x.among.count, x.among.stride, how_.devices());
}

double transformer::activation_collective_time(const pending& x) const {
  const auto& tag = x.argument;
  const auto halves = x.what == op::all_reduce ? 1.0 : 0.5;
  const auto samples = memory_.own_samples(tag);
  if (of_keys(tag.kind))
    return gathered_keys_time(x);
  if (x.what == op::all_to_all) { // there or back; of what they have made, the next layer's
    const auto layer = layer_of(samples, tag.layer - (places_.has_attention(tag.layer) ? 1 : 0));
    return (layer.exposed.experts + layer.hidden.experts) / 2;
  }
  if (tag.has == form::columns || x.results[0].has == form::columns)
    return columns_time(x);
  if (x.what == op::all_gather && !memory_.in_sequence()) { // what came back from experts: all ranks have all
    const auto from = tag.layer - (tag.kind == value_kind::activation ? 1 : 0);
    const auto whole = memory_.plain_bytes(static_cast<double>(samples));
    return places_.is_layer(from) ? tensor_all_reduce_time(whole, how_.shape.tensor, on_) / 2 : 0;
  }
  const auto place = place_of(x);
  if (!places_.has_attention(place)) // which stands for the whole layer; what the loss needs is in its time
    return 0;
  // A layer's collective stands for all of them on its way. Its input is gathered on both, the second time beside
  // the gradient by it: each counts half.
  const bool input = x.what == op::all_gather && tag.kind == value_kind::activation;
  return halves * (input ? 0.5 : 1) * layer_of(samples, place).exposed.tensor;
}

double transformer::collective_time(const pending& x) const {
  const auto& tag = x.argument;
  if (of_activation(tag.kind))
    return activation_collective_time(x);
  const auto halves = x.what == op::all_reduce ? 1.0 : 0.5;
  auto whole = tag;
  whole.part = {};
  const auto held = memory_.parameters(whole);
  if (x.among.count == 2 && x.among.stride % stage_size_ == 0)
    return halves * mirror_all_reduce_time(held.sum(), on_, how_.shape); // of two stages
  if (shards_stand_for_all_)
    return x.what == op::all_reduce
             ? groups_all_reduce_time(memory_.parameters(tag), on_, how_)
             : shard_time(moved_bytes(x.what), held, on_, how_) + shard_latency(held.experts > 0, on_, how_);
  if (how_.shard > 0 || how_.as_simulated) { // as the strategy has its groups
    const auto bytes = moved_bytes(x.what) * held.sum();
    if (x.what == op::all_reduce)
      return all_reduce_time(bytes / tag.part.count, on_, x.among.count, x.among.stride, how_.devices());
    return ring_time(bytes, on_, x.among.count, x.among.stride, how_.devices())
           + ring_latency(on_, x.among.count, x.among.stride, how_.devices());
  }
  return halves * gradient_time(held, moved_bytes(x.what));
}

double transformer::gradient_time(const rank_parameters& held, double bytes) const {
  return all_reduce_time(bytes, held, how_.replicas(), on_, how_) * gradients_exposed_;
}

/// With the gradients' collectives of the context's and experts' ranks, where there are no others for which the
/// strategy has them.
double transformer::update_time(const value_tag& x) const {
  const auto seconds = memory_.state_parameters(x) * update_seconds(on_, how_);
  const bool summed = how_.shape.data > 1 || how_.shard > 0 || keys_apart_ || network_apart_;
  return seconds + (x.layer == 0 ? on_.iteration_s : 0)
         + (summed ? 0 : gradient_time(memory_.parameters(x), how_.reduced_bytes()));
}

/// To a run of the keys, one block of a ring's; or to all, in one piece.
double transformer::attention_time(const pending& x) const {
  if (!places_.has_attention(x.argument.layer))
    return 0;
  const auto layer = layer_of(x.argument.samples.count(), x.argument.layer);
  const auto run = x.argument.positions();
  if (run.all())
    return x.what == op::attend ? layer.core - layer.split : layer.core_backward - layer.split_backward;
  return (x.what == op::attend ? layer.core : layer.core_backward) * run.count / run.of;
}

/// Without what is operations of its own.
double transformer::computing_time(const pending& x) const {
  const auto& tag = x.argument;
  const auto samples = memory_.own_samples(tag);
  const auto ends = places_.is_first(tag.layer) ? ends_of(samples) : end_times{};
  const auto layer = layer_of(samples, tag.layer);
  const auto exchanged = (shards_stand_for_all_ ? 0 : layer.exposed.tensor) + (keys_apart_ ? layer.exposed.context : 0)
                         + (network_apart_ ? layer.exposed.experts : 0);
  auto own = [&](double whole, double network, double core) {
    whole -= exchanged;
    if (!places_.has_attention(tag.layer))
      return network * whole;
    return (network_apart_ ? 1 - network : 1) * whole - (keys_apart_ ? core : 0);
  };
  if (x.what == op::forward)
    return own(layer.forward, layer.network, layer.core) + ends.embedding_forward();
  const auto backward = own(layer.backward, layer.network_backward, layer.core_backward);
  if (x.what == op::backward)
    return backward + ends.embedding_backward();
  return x.what == op::backward_weight ? layer.by_weight : backward - layer.by_weight + ends.embedding_backward();
}

double transformer::time_of(const pending& x, uint32_t) const {
  const auto& tag = x.argument;
  if (is_collective(x.what))
    return collective_time(x);
  switch (x.what) {
    case op::forward:
    case op::backward:
    case op::backward_input:
    case op::backward_weight: return computing_time(x);
    case op::attend:
    case op::attend_backward: return attention_time(x);
    case op::loss: return ends_of(tag.samples.count()).loss;
    case op::update: return update_time(tag);
    case op::receive:
      return of_keys(tag.kind) ? keys_time(tag)
                               : hop_time(model_, on_, with_samples(tag.samples.count())) * on_.exposed_hop;
    case op::offload:
    case op::fetch: return static_cast<double>(memory_of(tag)) / on_.host_link_bandwidth;
    default: return 0; // a send is the receiver's time; weights are there, and a layer's keys made in its own
  }
}

} // namespace

transformer_places places_of(const language_model& trained, const parallel_setting& how,
                             const std::vector<beyond>& by_strategy) {
  return {trained, how, has(by_strategy, beyond::experts)};
}

std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how, const std::vector<beyond>& by_strategy) {
  return std::make_unique<transformer>(trained, on, how, by_strategy, nullptr);
}

std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how, const mesh& simulated) {
  return std::make_unique<transformer>(trained, on, how, std::vector<beyond>{}, &simulated);
}

} // namespace ringmaster::training
