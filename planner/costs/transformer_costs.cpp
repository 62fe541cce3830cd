#include "planner/costs/transformer_costs.hpp"

#include "planner/costs/transformer_exchanges.hpp"
#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/iteration_estimate.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "training/language/collective_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace ringmaster::training {

namespace {

bool has(const std::vector<beyond>& all, beyond x) {
  return std::ranges::find(all, x) != all.end();
}

class transformer final : public cost_model {
public:
  /// With `simulated`, some ranks stand for all.
  transformer(const language_model& trained, const gpu_system& on, const training_setting& how,
              const std::vector<beyond>& by_strategy, const mesh* simulated)
    : model_(trained), on_(on), how_(how), keys_apart_(has(by_strategy, beyond::positions)),
      network_apart_(has(by_strategy, beyond::experts)), shards_represent_all_(simulated && how.shard_ranks > 0),
      places_(model_, how_, network_apart_),
      memory_(model_, how_, places_, keys_apart_ ? how.cp : 1, shards_represent_all_,
              shards_represent_all_ || (simulated && simulated->data < how.dp)),
      layers_(model_, on_, how_, places_),
      exchanges_(model_, on_, how_, places_, memory_, layers_,
                 simulated ? simulated->stage_size() : how.shape().stage_size() * (keys_apart_ ? how.cp : 1),
                 shards_represent_all_) {}
  transformer(const transformer&) = delete; // its parts know each other

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
                                how_.counts() == counted_scores::full);
    return 100 * flops / (on_.peak_of(how_.computed_in) * how_.devices() * time);
  }
  std::string_view mfu_counts() const override { return ringmaster::training::name_of(how_.counts()); }

private:
  double update_time(const value_tag& x) const;
  double attention_time(const pending& x) const;
  double computing_time(const pending& x) const;

  language_model model_;
  gpu_system on_;
  training_setting how_;
  bool keys_apart_, network_apart_; ///< Are the strategy's operations.
  bool shards_represent_all_;       ///< Two for those of all that share weights fully.
  transformer_places places_;
  transformer_memory memory_;
  transformer_layers layers_;
  transformer_exchanges exchanges_;
};

/// With the gradients' collectives of the context's and experts' ranks, where there are no others for which the
/// strategy has them.
double transformer::update_time(const value_tag& x) const {
  const auto seconds = memory_.state_parameters(x) * update_seconds(on_, how_);
  const bool summed = how_.dp > 1 || how_.shard_ranks > 0 || keys_apart_ || network_apart_;
  return seconds + (x.layer == 0 ? on_.iteration_s : 0)
         + (summed ? 0 : exchanges_.gradient_time(memory_.parameters(x), how_.reduced_bytes()));
}

/// To a run of the keys, one block of a ring's; or to all, in one piece.
double transformer::attention_time(const pending& x) const {
  if (!places_.has_attention(x.argument.layer))
    return 0;
  const auto layer = layers_.layer_of(x.argument.samples.count(), x.argument.layer);
  const auto run = x.argument.positions();
  if (run.all())
    return x.what == op::attend ? layer.core - layer.split : layer.core_backward - layer.split_backward;
  return (x.what == op::attend ? layer.core : layer.core_backward) * run.count / run.of;
}

/// Without what is operations of its own.
double transformer::computing_time(const pending& x) const {
  const auto& tag = x.argument;
  const auto samples = memory_.own_samples(tag);
  const auto ends = places_.is_first(tag.layer) ? layers_.ends_of(samples) : end_times{};
  const auto layer = layers_.layer_of(samples, tag.layer);
  const auto exchanged = (shards_represent_all_ ? 0 : layer.exposed.tensor) + (keys_apart_ ? layer.exposed.context : 0)
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
  const auto behind = layer.network_by_weight;
  const auto by_weight = layer.by_weight
                         * (!network_apart_                    ? 1
                            : places_.has_attention(tag.layer) ? 1 - behind
                                                               : behind);
  return x.what == op::backward_weight ? by_weight : backward - by_weight + ends.embedding_backward();
}

double transformer::time_of(const pending& x, uint32_t) const {
  const auto& tag = x.argument;
  if (is_collective(x.what))
    return exchanges_.collective_time(x);
  switch (x.what) {
    case op::forward:
    case op::backward:
    case op::backward_input:
    case op::backward_weight: return computing_time(x);
    case op::attend:
    case op::attend_backward: return attention_time(x);
    case op::loss: return layers_.ends_of(tag.samples.count()).loss;
    case op::update: return update_time(tag);
    case op::receive: return of_keys(tag.kind) ? exchanges_.keys_time(tag) : layers_.hop_of(tag.samples.count());
    case op::offload:
    case op::fetch: return static_cast<double>(memory_of(tag)) / on_.host_link_bandwidth;
    default: return 0; // a send is the receiver's time; weights are there, and a layer's keys made in its own
  }
}

} // namespace

transformer_places places_of(const language_model& trained, const training_setting& how,
                             const std::vector<beyond>& by_strategy) {
  return {trained, how, has(by_strategy, beyond::experts)};
}

std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const training_setting& how, const std::vector<beyond>& by_strategy) {
  return std::make_unique<transformer>(trained, on, how, by_strategy, nullptr);
}

std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const training_setting& how, const mesh& simulated) {
  return std::make_unique<transformer>(trained, on, how, std::vector<beyond>{}, &simulated);
}

namespace {

constexpr uint64_t measured_element_bytes = 4;

gpu_system this_host(const cost_constants& network, double memory_bandwidth) {
  auto x = *system_of("cpu-2core");
  x.name = "measured";
  x.memory_bandwidth = memory_bandwidth;
  x.hop_bandwidth = x.network_bandwidth = network.bandwidth;
  x.hop_latency_s = network.latency_s + network.message_overhead_s;
  return x;
}

class measured final : public cost_model {
public:
  measured(const language_model& trained, const cost_constants& network, double memory_bandwidth,
           const training_setting& how)
    : model_(trained), network_(network),
      layers_(transformer_costs(trained, this_host(network, memory_bandwidth), how)) {}

  std::string_view name() const override { return "measured"; }
  std::string about() const override { return layers_->about(); }
  uint64_t room() const override { return layers_->room(); }
  uint64_t working_memory(const pending& x) const override { return layers_->working_memory(x); }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return false; }
  uint64_t memory_of(const value_tag& x) const override { return layers_->memory_of(x); }
  double mfu_percent(const model& trained, uint32_t world_size, double time) const override {
    return layers_->mfu_percent(trained, world_size, time);
  }

  double time_of(const pending& x, uint32_t world_size) const override {
    if (!is_collective(x.what))
      return layers_->time_of(x, world_size);
    const bool samples = of_activation(x.argument.kind);
    const auto count = samples ? static_cast<double>(x.argument.samples.count()) * model_.sequence * model_.hidden
                               : parameters_at(x.argument.layer) / x.argument.tensor.count;
    return (samples ? 2 : 1)
           * seconds(collective_kind_of(x.what), x.among.count,
                     static_cast<uint64_t>(count)); // a layer has two exchanges
  }

private:
  /// Of a layer; the first one has the embedding with it.
  double parameters_at(uint32_t layer) const {
    return parameters_of_layer(model_, layer)
           + (layer == 0 ? static_cast<double>(model_.hidden) * model_.vocabulary : 0);
  }
  /// Seconds of a collective on `count` elements in all.
  double seconds(proto::CollectiveKind kind, uint32_t ranks, uint64_t count) const {
    if (ranks == 1)
      return 0;
    auto [at, is_new] = known_.try_emplace({kind, ranks, count}, 0);
    if (!is_new)
      return at->second;
    plan_request request;
    request.world_size = ranks;
    request.count = count_for_size(kind, ranks, count);
    auto picked = select_algorithm(kind, request, measured_element_bytes, network_);
    return at->second = picked ? picked->time.total_s() : HUGE_VAL;
  }

  language_model model_;
  cost_constants network_;
  std::unique_ptr<cost_model> layers_;
  mutable std::map<std::tuple<proto::CollectiveKind, uint32_t, uint64_t>, double> known_;
};

} // namespace

std::unique_ptr<cost_model> measured_costs(const language_model& trained, const cost_constants& network,
                                           double memory_bandwidth, const training_setting& how) {
  return std::make_unique<measured>(trained, network, memory_bandwidth, how);
}

} // namespace ringmaster::training
