#include "runtime/training/transformer/plans/transformer_costs.hpp"

#include "runtime/training/transformer/estimates/exchange_times.hpp"
#include "runtime/training/transformer/estimates/iteration_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ringmaster::training {

namespace {

/// The simulated layers of a stage are places: where layers do not divide among stages, the embedding has the first
/// one for itself, the logits the one behind the last layer, and what is left is empty (Megatron-LM's layouts).
class transformer final : public cost_model {
  static constexpr double element_bytes = 2;

public:
  transformer(const language_model& trained, const gpu_system& on, const parallel_setting& how, const mesh& simulated,
              bool some_stand_for_all)
    : model_(trained), on_(on), how_(how), simulated_(simulated),
      shards_stand_for_all_(some_stand_for_all && how.shard > 0),
      ends_apart_(places_of(trained, how) != trained.layers),
      gradients_exposed_(how.shard > 0 || how.as_simulated ? 1 : exposed_gradients(trained, on, how)) {}

  std::string_view name() const override { return "transformer"; }
  std::string about() const override {
    return fmt::format("{} on {}, recompute {}", model_.name, on_.name, ringmaster::training::name_of(how_.again));
  }
  uint64_t room() const override { return static_cast<uint64_t>(on_.room_bytes()); }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return false; }
  bool knows(beyond x) const override { return x == beyond::nothing || x == beyond::groups; }

  uint64_t memory_of(const value_tag& x) const override {
    if (of_activation(x.kind))
      return static_cast<uint64_t>(activation_memory(x));
    const bool buffer = how_.zero <= 1
                        && how_.shard == 0; // gradients are added to one that is always there (Megatron-LM)
    if (x.kind == value_kind::weight)
      return static_cast<uint64_t>((bytes_of(how_.computed_in).weight + (buffer ? how_.gradient_bytes : 0))
                                   * parameters(x).sum());
    if (x.kind == value_kind::weight_gradient)
      return buffer ? 0 : static_cast<uint64_t>(how_.gradient_bytes * parameters(x).sum());
    return how_.offloads_states ? 0 : static_cast<uint64_t>(how_.state_bytes * state_parameters(x));
  }

  double time_of(const pending& x, uint32_t world_size) const override;

  uint64_t working_memory(const pending& x) const override {
    const bool goes_back = x.what == op::backward || x.what == op::backward_input;
    if (!goes_back || !is_layer(x.argument.layer))
      return 0;
    const auto samples = static_cast<double>(x.argument.samples.count());
    double bytes = 0;
    if (shards_stand_for_all_ && in_sequence()) // the layer's input, gathered: no tensor-parallel ranks are simulated
      bytes += plain_bytes(samples);
    auto whole = how_;
    whole.again = recomputation::none;
    if (how_.again != recomputation::none)
      bytes += activation_bytes(model_, samples, whole, kind_of(x.argument.layer));
    return static_cast<uint64_t>(bytes);
  }

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
  bool in_sequence() const { return how_.sequence_parallel && how_.shape.tensor > 1; }
  bool is_layer(uint32_t place) const { return !ends_apart_ || (place >= 1 && place <= model_.layers); }
  bool is_first(uint32_t place) const { return place == 0; }
  bool has_output(uint32_t place) const { return place == model_.layers + (ends_apart_ ? 1 : -1); }
  layer_kind kind_of(uint32_t place) const {
    const auto layer = ends_apart_ ? place - 1 : place;
    return {model_.has_experts(layer), model_.is_windowed(layer)};
  }
  rank_parameters parameters(const value_tag& x) const;
  /// Ranks that share what the tag has a part of; where its shards stand for all, so many.
  uint32_t sharers(const value_tag& x, uint32_t all) const {
    return shards_stand_for_all_ && !x.part.whole() ? all : x.part.count;
  }
  /// Of which this rank has the optimizer's states: context ranks share them, too, and experts' other ones do.
  double state_parameters(value_tag x) const {
    if (how_.zero == 0)
      return parameters(x).sum();
    x.part = {};
    const auto whole = parameters(x);
    return whole.dense / how_.replicas() + whole.experts / how_.expert_replicas();
  }
  double activation_memory(const value_tag& x) const;
  /// Of an activation of all positions of a context's rank.
  double plain_bytes(double samples) const {
    return element_bytes * samples * model_.sequence / how_.context * model_.hidden;
  }
  const layer_times& layer_of(uint64_t samples, uint32_t place) const;
  const end_times& ends_of(uint64_t samples) const;
  parallel_setting with_samples(uint64_t samples) const {
    auto how = how_;
    how.micro_batch = static_cast<uint32_t>(samples);
    return how;
  }
  double collective_time(const pending& x) const;
  double columns_time(const pending& x) const;
  double gradient_time(const rank_parameters& held, double bytes) const;
  /// Of a parameter, in one of these.
  double moved_bytes(op what) const {
    return what == op::all_gather ? bytes_of(how_.computed_in).gathered : how_.gradient_bytes;
  }
  double update_time(const value_tag& x) const;
  double computing_time(const pending& x) const;

  language_model model_;
  gpu_system on_;
  parallel_setting how_;
  mesh simulated_;
  bool shards_stand_for_all_; ///< Two for those of all that share weights fully.
  bool ends_apart_;
  double gradients_exposed_;                ///< Part of their collectives.
  mutable std::map<uint64_t, times> known_; ///< By samples.
};

/// Of a place's shard.
rank_parameters transformer::parameters(const value_tag& x) const {
  rank_parameters result;
  if (is_layer(x.layer))
    result += layer_parameters(model_, how_, kind_of(x.layer).experts);
  if (is_first(x.layer))
    result += {table_parameters(model_, how_), 0};
  if (has_output(x.layer))
    result += output_parameters(model_, how_);
  return {result.dense / sharers(x, how_.sharers()), result.experts / sharers(x, how_.expert_sharers())};
}

double transformer::activation_memory(const value_tag& x) const {
  const auto samples = static_cast<double>(x.samples.count());
  const auto plain = plain_bytes(samples);
  const auto last = ends_apart_ ? places_of(model_, how_) : model_.layers;
  if (x.kind == value_kind::activation && x.layer == last && x.has == form::whole) // the logits come of it
    return plain + (1 + model_.multi_token) * 2 * plain / model_.hidden * model_.vocabulary / how_.shape.tensor
           + model_.multi_token * activation_bytes(model_, samples, how_, {model_.experts.count > 0, false});
  const bool part = x.has == form::sequence || x.has == form::columns;
  const bool kept = x.kind == value_kind::activation && x.layer < last && x.has != form::summand
                    && (shards_stand_for_all_ || part == in_sequence());
  if (!kept || !is_layer(x.layer))
    return part ? plain / how_.shape.tensor : plain;
  return activation_bytes(model_, samples, how_, kind_of(x.layer));
}

const layer_times& transformer::layer_of(uint64_t samples, uint32_t place) const {
  const auto kind = kind_of(place);
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
  if (!is_layer(place))
    return 0;
  const auto& e = model_.experts;
  const double h = model_.hidden, up = model_.gated ? 2 : 1;
  const auto width = kind_of(place).experts ? 1.0 * (e.chosen + e.shared) * e.width : model_.width;
  auto made = model_.heads * 1.0 * model_.head_size, keys = 2.0 * model_.key_value_heads * model_.head_size;
  if (const auto& latent = model_.latent; latent.key_value_rank > 0) { // what attention makes of them, whole
    made = model_.heads * 1.0 * latent.value_size;
    keys = model_.heads * (2.0 * model_.head_size + 2 * latent.rotary_size);
  }
  const auto elements = gathers ? made + keys + h + up * width + h : h + made + h + width;
  const auto rows = static_cast<double>(x.argument.samples.count()) * model_.sequence / how_.context;
  return tensor_all_reduce_time(bf16_bytes * rows * elements, how_.shape.tensor, on_) / 2;
}

double transformer::collective_time(const pending& x) const {
  const auto& tag = x.argument;
  const auto halves = x.what == op::all_reduce ? 1.0 : 0.5;
  if (of_activation(tag.kind)) {
    if (tag.has == form::columns || x.results[0].has == form::columns)
      return columns_time(x);
    const bool behind_last = tag.layer == (ends_apart_ ? places_of(model_, how_) : model_.layers);
    if (!is_layer(tag.layer) || (x.what == op::all_gather && behind_last)) // what the loss needs is in its time
      return 0;
    // A layer's collective stands for all of them on its way. Its input is gathered on both, the second time beside
    // the gradient by it: each counts half.
    const bool input = x.what == op::all_gather && tag.kind == value_kind::activation;
    return halves * (input ? 0.5 : 1) * layer_of(tag.samples.count(), tag.layer).exposed.tensor;
  }
  auto whole = tag;
  whole.part = {};
  const auto held = parameters(whole);
  if (x.among.count == 2 && x.among.stride % (simulated_.tensor * simulated_.data) == 0)
    return halves * mirror_all_reduce_time(held.sum(), on_, how_.shape); // of two stages
  if (shards_stand_for_all_)
    return x.what == op::all_reduce
             ? groups_all_reduce_time(parameters(tag), on_, how_)
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

/// With the gradients' collectives of the context's and experts' ranks, where there are no data-parallel ones for
/// which the strategy has them.
double transformer::update_time(const value_tag& x) const {
  const auto seconds = state_parameters(x) * update_seconds(on_, how_);
  return seconds + (x.layer == 0 ? on_.iteration_s : 0)
         + (how_.shape.data == 1 && how_.shard == 0 ? gradient_time(parameters(x), how_.reduced_bytes()) : 0);
}

double transformer::computing_time(const pending& x) const {
  const auto& tag = x.argument;
  const auto ends = is_first(tag.layer) ? ends_of(tag.samples.count()) : end_times{};
  const layer_times layer = is_layer(tag.layer) ? layer_of(tag.samples.count(), tag.layer) : layer_times{};
  const auto apart = shards_stand_for_all_ ? 0 : layer.exposed.tensor; // collectives by themselves
  if (x.what == op::forward)
    return layer.forward - apart + ends.embedding_forward();
  if (x.what == op::backward)
    return layer.backward - apart + ends.embedding_backward();
  return x.what == op::backward_weight ? layer.by_weight
                                       : layer.backward - apart - layer.by_weight + ends.embedding_backward();
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
    case op::loss: return ends_of(tag.samples.count()).loss;
    case op::update: return update_time(tag);
    case op::receive: return hop_time(model_, on_, with_samples(tag.samples.count())) * on_.exposed_hop;
    case op::offload:
    case op::fetch: return static_cast<double>(memory_of(tag)) / on_.host_link_bandwidth;
    default: return 0; // a send is the receiver's time; weights are there
  }
}

} // namespace

uint32_t places_of(const language_model& trained, const parallel_setting& how) {
  return how.chunk_layers(trained.layers) * how.chunks_of_stage() * how.shape.pipeline;
}

std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how) {
  return std::make_unique<transformer>(trained, on, how, how.shape, false);
}

std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how, const mesh& simulated) {
  return std::make_unique<transformer>(trained, on, how, simulated, true);
}

} // namespace ringmaster::training
